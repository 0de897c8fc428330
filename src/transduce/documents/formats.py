"""The document formats: which one a file has. A new format is a module with ``FORMATS``, entered in ``_MODULES``."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import PurePath

from transduce.documents.document import MAX_TEXT_BYTES, Document, Format, Reading
from transduce.errors import ConfigError, DataError, quoted

__all__ = ["all_formats", "format_named", "format_of", "read_document"]

_MODULES = (
    "plain_text", "markdown", "xliff", "html", "xml", "subtitles", "json_texts", "properties", "apple_strings",
    "po", "docx", "pptx", "xlsx", "opendocument", "epub",
)  # fmt: skip


@cache
def all_formats() -> tuple[Format, ...]:
    """Return every format."""
    return tuple(each for name in _MODULES for each in import_module(f"transduce.documents.{name}").FORMATS)


def format_of(name: str, data: bytes = b"") -> Format:
    """Return the format of a file by its name, else by its content. Raises DataError for one that is unknown."""
    ending = PurePath(name).suffix.lower()
    by_name = next((each for each in all_formats() if ending in each.endings), None)
    found = by_name or next((each for each in all_formats() if each.recognises(data)), None)
    if found is None:
        known = ", ".join(each.endings[0] for each in all_formats())
        raise DataError(f"{quoted(name)} is no document of a known format; known are {known}")
    return found


def format_named(format: str) -> Format:
    """Return the format of a name such as "docx". Raises ConfigError for one that is unknown."""
    found = next((each for each in all_formats() if each.name == format), None)
    if found is None:
        known = ", ".join(each.name for each in all_formats())
        raise ConfigError(f"format {quoted(format)} is unknown; known are {known}")
    return found


def read_document(data: bytes, name: str, reading: Reading | None = None, *, format: str = "") -> Document:
    """Read a document, in the ``format`` of that name if there is one.

    Raises DataError, with the name of the document, if it cannot be read; ConfigError for an unknown ``format``.
    """
    found = format_named(format) if format else format_of(name, data)
    try:
        if len(data) > MAX_TEXT_BYTES and not found.is_archive:
            raise DataError(f"it has {len(data):,} bytes, of which {MAX_TEXT_BYTES:,} are read at once; divide it")
        return found.read(data, reading or Reading())
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
