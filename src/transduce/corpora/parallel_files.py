"""The user's own text: two aligned files, or one with a tab between source and target; plain, .gz or .xz.

Bytes that are not UTF-8 are an error, and so is a line without two columns. Text that goes to ``clean`` is read so that
it can drop and count such lines: bytes become lone surrogates by ``escape_invalid``, and a line that is no pair None.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from pathlib import Path

from transduce.errors import DataError
from transduce.files import CutLine, open_binary, raw_lines, read_lines

__all__ = ["read_aligned_files", "read_tab_separated", "read_uncleaned_columns", "two_columns"]


def read_aligned_files(src: Path, tgt: Path, *, escape_invalid: bool = False) -> Iterator[tuple[str, str]]:
    """The pairs of two files, line by line, as a stream.

    Raises DataError if one file has more lines than the other, with both counts and the first suspicious line.
    """
    src_lines, tgt_lines = (read_lines(path, escape_invalid=escape_invalid) for path in (src, tgt))
    for n_pairs, (src_line, tgt_line) in enumerate(zip_longest(src_lines, tgt_lines)):
        if src_line is None or tgt_line is None:
            shorter, longer, rest = (src, tgt, tgt_lines) if src_line is None else (tgt, src, src_lines)
            n_longer = n_pairs + 1 + sum(1 for _ in rest)
            raise DataError(
                f"{shorter} has {n_pairs:,} lines, {longer} {n_longer:,}; parallel files must align line by line"
                f" ({_where_to_look(src, tgt)})"
            )
        yield src_line, tgt_line


def read_tab_separated(path: Path) -> Iterator[tuple[str, str]]:
    """The pairs of one file, ``source TAB target`` on each line, as a stream.

    Raises DataError for a line without exactly one tab, and for one that is not UTF-8.
    """
    for number, line in enumerate(read_lines(path), start=1):
        pair = two_columns(line)
        if pair is None:
            raise DataError(f"{path}:{number} has {line.count(chr(9))} tabs; expected source TAB target")
        yield pair


def read_uncleaned_columns(path: Path) -> Iterator[tuple[str, str] | None]:
    """The same for ``clean``: None for a line without exactly one tab, lone surrogates for bytes that are not UTF-8."""
    return map(two_columns, read_lines(path, escape_invalid=True))


def two_columns(line: str) -> tuple[str, str] | None:
    """Source and target of ``source TAB target``; None for a line without exactly one tab.

    A line that was too long to be read whole is both: ``clean`` knows it, and drops it.
    """
    if isinstance(line, CutLine):
        return line, line  # where its tab stands is not known, and it is of no use
    src, tab, tgt = line.partition("\t")
    return (src, tgt) if tab and "\t" not in tgt else None


# Where two files stop being translations of each other, the ratio of their line lengths, steady before, begins to jump.
# Jumps need no knowledge of what ratio two languages have. They are read again for each question instead of kept.

MIN_PAIRS_PER_SIDE = 10  # a mean of fewer jumps says little
MIN_CHANGE_Z = 5.0  # standard errors; the largest of many places, so more than the usual two or three


def _where_to_look(src: Path, tgt: Path) -> str:
    """A hint for two files that do not align: where the lengths of their lines stop matching, or a blank line."""
    if not (src.is_file() and tgt.is_file()):
        return "a pipe cannot be read again to find out where"  # and opening it would wait forever
    hints = []
    changed = _where_lengths_part(src, tgt)
    if changed is not None:
        hints.append(f"the lengths stop matching around line {changed:,}")
    lengths = enumerate(_lengths(src, tgt), start=1)
    blank = next(((number, n_src) for number, (n_src, n_tgt) in lengths if (n_src == 0) != (n_tgt == 0)), None)
    if blank is not None:
        number, n_src = blank
        hints.append(f"first line that is blank in one file only: {src if n_src == 0 else tgt}:{number:,}")
    return "; ".join(hints) or "no line stands out; look at the first and the last ones"


def _where_lengths_part(src: Path, tgt: Path) -> int | None:
    """The number of the line after which the length ratio jumps most clearly more than before; None if nowhere."""
    n_jumps, total, total_of_squares = 0, 0.0, 0.0
    for jump in _ratio_jumps(src, tgt):
        n_jumps += 1
        total += jump
        total_of_squares += jump * jump
    if n_jumps < 2 * MIN_PAIRS_PER_SIDE:
        return None
    mean = total / n_jumps
    deviation = math.sqrt(max(total_of_squares / n_jumps - mean * mean, 1e-12))

    clearest, place, total_before = MIN_CHANGE_Z, None, 0.0
    for n_before, jump in enumerate(_ratio_jumps(src, tgt), start=1):
        total_before += jump
        n_after = n_jumps - n_before
        if min(n_before, n_after) < MIN_PAIRS_PER_SIDE:
            continue
        missing = n_before * mean - total_before  # how much less it jumped so far than on the average
        change = missing / (deviation * math.sqrt(n_before * n_after / n_jumps))
        if change > clearest:
            clearest, place = change, n_before + 2  # jump n leads from line n to n + 1; the next one was too large
    return place


def _ratio_jumps(src: Path, tgt: Path) -> Iterator[float]:
    ratios = (math.log((n_src + 1) / (n_tgt + 1)) for n_src, n_tgt in _lengths(src, tgt))
    return (abs(ratio - previous) for previous, ratio in pairwise(ratios))


def _lengths(src: Path, tgt: Path) -> Iterator[tuple[int, int]]:
    """The bytes of both lines, without the whitespace round them, as far as both files go."""
    with open_binary(src) as src_lines, open_binary(tgt) as tgt_lines:
        for (src_line, _), (tgt_line, _) in zip(raw_lines(src_lines), raw_lines(tgt_lines), strict=False):
            yield len(src_line.strip()), len(tgt_line.strip())
