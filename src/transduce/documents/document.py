"""What every document format offers: its texts, and the same bytes with other texts.

A reader finds the texts of a document and keeps all else as it is; ``Document.written`` puts translations in their
places. So a document without translations is the same bytes again, and what is not understood survives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from transduce.config import Wanted
from transduce.text.markup import Unit

__all__ = ["MAX_TEXT_BYTES", "Document", "Format", "Reading", "Segment"]

MAX_TEXT_BYTES = 16 << 20  # of a document, or a part of it, whose texts are read: they take up to 80 times the memory


@dataclass(frozen=True, slots=True)
class Reading:
    """How a document is read."""

    is_protected: bool = False  # URLs, addresses and placeholders are kept apart as tags: the model does not copy them
    wanted: Wanted = "empty"
    is_trusted: bool = False  # translations are not marked as unsure
    first_line: int = 1  # of plain text: a long one is read in pieces


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A text that is read as one: a paragraph, a cell, a message, the sentence of several subtitles."""

    unit: Unit  # its text, and the tags inside it
    place: str  # for people: "line 12", "word/footnotes.xml, paragraph 3"
    target: str = ""  # the translation that the file has
    is_wanted: bool = True  # whether it is to be translated
    context: str = ""  # what tells equal texts apart: a key, msgctxt
    placeholders: tuple[str, ...] = ()  # their kinds, as the file names them: "c-format"


class Document(Protocol):
    """A document that was read."""

    @property
    def segments(self) -> Sequence[Segment]:
        """Its texts, in order."""

    def written(self, targets: Sequence[str | None], *, tgt_language: str = "") -> bytes:
        """Return the document with the translation of each segment, as ``Unit.put_back`` gives it; None: as it was.

        A translation that its place cannot hold raises DataError. ``tgt_language`` ("de") is written where the format
        names its language.
        """


@dataclass(frozen=True, slots=True)
class Format:
    """A document format. Its reader raises DataError, in one line, for bytes that are not such a document."""

    name: str  # "docx"
    endings: tuple[str, ...]  # of file names, the usual first
    read: Callable[[bytes, Reading], Document]
    media_type: str
    recognises: Callable[[bytes], bool] = lambda data: False  # by content alone, where the name says nothing
    is_archive: bool = False  # of parts, whose sizes are limited instead of its own
