"""The document formats: which one a file has. A new format is a module with ``FORMATS``, entered in ``_MODULES``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import PurePath

from transduce.documents.document import Document, Format, Reading
from transduce.errors import DataError, quoted

__all__ = ["all_formats", "format_of", "read_document"]

_MODULES = ("plain_text", "po", "xliff")


@cache
def all_formats() -> tuple[Format, ...]:
    """Return every format."""
    return tuple(_formats())


def _formats() -> Iterator[Format]:
    for name in _MODULES:
        yield from import_module(f"transduce.documents.{name}").FORMATS


def format_of(name: str, data: bytes = b"") -> Format:
    """Return the format of a file by its name, else by its content. Raises DataError for one that is unknown."""
    ending = PurePath(name).suffix.lower()
    by_name = next((each for each in all_formats() if ending in each.endings), None)
    found = by_name or next((each for each in all_formats() if each.recognises(data)), None)
    if found is None:
        known = ", ".join(each.endings[0] for each in all_formats())
        raise DataError(f"{quoted(name)} is no document of a known format; known are {known}")
    return found


def read_document(data: bytes, name: str, reading: Reading | None = None) -> Document:
    """Read a document. Raises DataError, with its name, if it cannot be read."""
    found = format_of(name, data)
    try:
        return found.read(data, reading or Reading())
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
