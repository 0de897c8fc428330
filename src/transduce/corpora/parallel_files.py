"""The user's own text: two aligned files, or one with a tab between source and target; plain, .gz or .xz."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from transduce.errors import DataError
from transduce.files import read_lines

__all__ = ["read_aligned_files", "read_tab_separated"]


def read_aligned_files(src: Path, tgt: Path) -> Iterator[tuple[str, str]]:
    """The pairs of two files, line by line, as a stream.

    Raises DataError if one file has more lines than the other, with both counts.
    """
    src_lines, tgt_lines = read_lines(src), read_lines(tgt)
    for n_pairs, (src_line, tgt_line) in enumerate(zip_longest(src_lines, tgt_lines)):
        if src_line is None or tgt_line is None:
            shorter, longer, rest = (src, tgt, tgt_lines) if src_line is None else (tgt, src, src_lines)
            n_longer = n_pairs + 1 + sum(1 for _ in rest)
            raise DataError(
                f"{shorter} has {n_pairs:,} lines, {longer} {n_longer:,}; parallel files must align line by line"
            )
        yield src_line, tgt_line


def read_tab_separated(path: Path) -> Iterator[tuple[str, str]]:
    """The pairs of one file, ``source TAB target`` on each line, as a stream.

    Raises DataError for a line without exactly one tab.
    """
    for number, line in enumerate(read_lines(path), start=1):
        src, tab, tgt = line.partition("\t")
        if not tab or "\t" in tgt:
            raise DataError(f"{path}:{number} has {line.count(chr(9))} tabs; expected source TAB target")
        yield src, tgt
