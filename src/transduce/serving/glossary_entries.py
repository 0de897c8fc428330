"""The entries of a glossary as clients of DeepL send them: tables of TAB or comma separated values."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from typing import Literal

from transduce.patterns import compiled_on_use
from transduce.serving.http import ApiError

__all__ = ["MAX_TERM_BYTES", "EntriesFormat", "as_tsv", "entries_of"]

EntriesFormat = Literal["tsv", "csv"]
MAX_TERM_BYTES = 1024  # of a source, a target, or the name of a glossary
_LINE_END = compiled_on_use(r"\r\n|\r|\n")
_CONTROL = compiled_on_use("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffd]")


def entries_of(text: str, format: EntriesFormat) -> dict[str, str]:
    """Return the translation of each source of a table, whose empty lines do not count.

    Raises ApiError, naming the line, for what is no pair, a source that is there twice, or no entries at all.

    >>> entries_of("dog\\tHund\\r\\n\\r\\n cat \\tKatze", "tsv"), entries_of('"a, b",c,EN,DE', "csv")
    ({'dog': 'Hund', 'cat': 'Katze'}, {'a, b': 'c'})
    """
    entries = dict[str, str]()
    for number, cells in _rows(text, format):
        if not any(cells):
            continue
        languages = cells[2:]  # a CSV may name them
        if len(cells) not in ((2,) if format == "tsv" else (2, 4)) or not all(languages):
            separator = "TAB" if format == "tsv" else "comma"
            raise _wrong(number, f"should have a source and a target with one {separator} between them")
        source, target = cells[:2]
        for each in (source, target):
            if not each or _CONTROL.search(each):
                raise _wrong(number, "should have a source and a target without control characters")
            if len(each.encode()) > MAX_TERM_BYTES:
                raise _wrong(number, f"has a term of more than {MAX_TERM_BYTES:,} bytes")
        if source in entries:
            raise _wrong(number, "has a source that an earlier line has")
        entries[source] = target
    if not entries:
        raise ApiError(400, "Invalid glossary entries provided: there are none")
    return entries


def as_tsv(entries: Mapping[str, str]) -> str:
    """Return entries as a table.

    >>> as_tsv({"dog": "Hund", "cat": "Katze"})
    'dog\\tHund\\ncat\\tKatze'
    """
    return "\n".join(f"{source}\t{target}" for source, target in entries.items())


def _rows(text: str, format: EntriesFormat) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that are not empty, with their numbers, as cells without spaces around them."""
    rows: Iterable[list[str]]
    if format == "tsv":
        rows = (line.split("\t") for line in _LINE_END.split(text))
    else:
        rows = csv.reader(StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    number = 0
    try:
        for number, row in enumerate(rows, start=1):
            yield number, [cell.strip() for cell in row]
    except csv.Error:
        raise _wrong(number + 1, "is no line of a CSV file") from None


def _wrong(number: int, what: str) -> ApiError:
    return ApiError(400, f"Invalid glossary entries provided: line {number:,} {what}")
