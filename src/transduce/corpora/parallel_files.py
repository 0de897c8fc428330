"""Readers of the user's parallel text: two aligned files, or one tab-separated file; plain, .gz or .xz.

Bytes that are not UTF-8 and lines without two columns are errors. In text for ``clean``, which drops and counts them,
the bytes become lone surrogates (``escape_invalid``), and a line that is not a pair becomes None.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, zip_longest
from pathlib import Path

from transduce.errors import DataError
from transduce.files import TruncatedLine, open_binary, raw_lines, read_lines

__all__ = ["hint_at_columns", "read_aligned_files", "read_tab_separated", "read_uncleaned_columns", "two_columns"]


SAMPLED_LINES = 1000  # whose columns are counted
MIN_DIFFERENT_SHARE = 0.1  # of the cells of a column of sentences, of which each may have several translations


def read_aligned_files(src: Path, tgt: Path, *, escape_invalid: bool = False) -> Iterator[tuple[str, str]]:
    """Stream the pairs of two line-aligned files.

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
    """Stream the pairs of one file with ``source TAB target`` on each line.

    Raises DataError for a line without exactly one tab, and for one that is not UTF-8.
    """
    for number, line in enumerate(read_lines(path), start=1):
        pair = two_columns(line)
        if pair is None:
            tabs = line.count(chr(9))
            raise DataError(f"{path}:{number} has {tabs} tabs; expected source TAB target{hint_at_columns(path)}")
        yield pair


def read_uncleaned_columns(path: Path) -> Iterator[tuple[str, str] | None]:
    """Like ``read_tab_separated`` for ``clean``: None for a line without exactly one tab, surrogates for non-UTF-8."""
    return map(two_columns, read_lines(path, escape_invalid=True))


def two_columns(line: str) -> tuple[str, str] | None:
    """Split ``source TAB target``; None for a line without exactly one tab.

    A line that was too long to be read whole is returned as both sides; ``clean`` recognises and drops it.
    """
    if isinstance(line, TruncatedLine):
        return line, line  # the tab may be beyond the cut
    src, tab, tgt = line.partition("\t")
    return (src, tgt) if tab and "\t" not in tgt else None


def hint_at_columns(path: Path) -> str:
    """Return how to get two columns of text from a file whose lines have more, to be added to a message; else "".

    The first two columns that are neither numbers, addresses nor a few values are taken for the text.
    """
    try:
        lines = list(islice(read_lines(path, escape_invalid=True), SAMPLED_LINES)) if path.is_file() else []
    except DataError:  # who reads the whole file reports it
        return ""
    rows = [line.split("\t") for line in lines]
    (n_columns, n_rows), *_ = Counter(map(len, rows)).most_common(1) or [(0, 0)]
    if n_columns < 3 or 2 * n_rows <= len(rows):
        return ""
    columns = zip(*(row for row in rows if len(row) == n_columns), strict=True)
    numbers = [number for number, cells in enumerate(columns, start=1) if _are_sentences(cells)]
    chosen = ",".join(map(str, numbers[:2])) if len(numbers) > 1 else "1,2"
    name = shlex.quote(str(path))
    unpacked = {".gz": f"zcat {name} | cut -f{chosen}", ".xz": f"xzcat {name} | cut -f{chosen}"}
    command = unpacked.get(path.suffix, f"cut -f{chosen} {name}")
    return f"; most have {n_columns} columns: keep those of the text, as in: {command} > two-columns.tsv"


def _are_sentences(cells: Sequence[str]) -> bool:
    """Whether most cells of a column have letters and are no addresses, and they are not a few different ones."""
    n_texts = sum(any(map(str.isalpha, cell)) and "://" not in cell for cell in cells)
    return 2 * n_texts > len(cells) and len(set(cells)) > MIN_DIFFERENT_SHARE * len(cells)


# Change-point detection: where two files stop being translations of each other, the ratio of their line lengths begins
# to jump. Jumps do not depend on the typical ratio of two languages. Files are reread instead of held in memory.

MIN_PAIRS_PER_SIDE = 10  # a mean of fewer jumps is unreliable
MIN_CHANGE_Z = 5.0  # standard errors; above the usual two or three because it is a maximum over many lines


def _where_to_look(src: Path, tgt: Path) -> str:
    """Hint for two files that do not align: where line lengths stop matching, or the first line blank in one file."""
    if not (src.is_file() and tgt.is_file()):
        return "a pipe cannot be read again to find out where"  # and opening it would block
    hints = []
    change = _length_change_point(src, tgt)
    if change is not None:
        hints.append(f"line lengths stop matching around line {change:,}")
    lengths = enumerate(_lengths(src, tgt), start=1)
    blank = next(((number, n_src) for number, (n_src, n_tgt) in lengths if (n_src == 0) != (n_tgt == 0)), None)
    if blank is not None:
        number, n_src = blank
        hints.append(f"first line that is blank in one file only: {src if n_src == 0 else tgt}:{number:,}")
    return "; ".join(hints) or "no suspicious line found; compare the first and the last lines"


def _length_change_point(src: Path, tgt: Path) -> int | None:
    """Return the line after which the jumps of the length ratio increase most significantly; None if nowhere."""
    n_jumps, total, total_of_squares = 0, 0.0, 0.0
    for jump in _ratio_jumps(src, tgt):
        n_jumps += 1
        total += jump
        total_of_squares += jump * jump
    if n_jumps < 2 * MIN_PAIRS_PER_SIDE:
        return None
    mean = total / n_jumps
    deviation = math.sqrt(max(total_of_squares / n_jumps - mean * mean, 1e-12))

    max_z, line, total_before = MIN_CHANGE_Z, None, 0.0
    for n_before, jump in enumerate(_ratio_jumps(src, tgt), start=1):
        total_before += jump
        n_after = n_jumps - n_before
        if min(n_before, n_after) < MIN_PAIRS_PER_SIDE:
            continue
        deficit = n_before * mean - total_before  # of the jumps so far against the overall mean
        z = deficit / (deviation * math.sqrt(n_before * n_after / n_jumps))
        if z > max_z:
            max_z, line = z, n_before + 2  # jump n is from line n to n + 1; the next one is too large
    return line


def _ratio_jumps(src: Path, tgt: Path) -> Iterator[float]:
    ratios = (math.log((n_src + 1) / (n_tgt + 1)) for n_src, n_tgt in _lengths(src, tgt))
    return (abs(ratio - previous) for previous, ratio in pairwise(ratios))


def _lengths(src: Path, tgt: Path) -> Iterator[tuple[int, int]]:
    """Yield the byte lengths of each line pair without surrounding whitespace, up to the end of the shorter file."""
    with open_binary(src) as src_lines, open_binary(tgt) as tgt_lines:
        for (src_line, _), (tgt_line, _) in zip(raw_lines(src_lines), raw_lines(tgt_lines), strict=False):
            yield len(src_line.strip()), len(tgt_line.strip())
