"""Plain text: each line, and each column of a line, is a text."""

from __future__ import annotations

from transduce.documents.document import Document, Format, Reading
from transduce.documents.encodings import decoded
from transduce.documents.spliced import SplicedText
from transduce.patterns import compiled_on_use
from transduce.text import needs_translation
from transduce.text.markup import Unit, plain_unit

__all__ = ["FORMATS"]

_LINE_OR_COLUMN_END = compiled_on_use("(\\A\ufeff|[\t\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+)")


def read(data: bytes, reading: Reading) -> Document:
    """Read a file of plain text in UTF-8, or UTF-16 with a byte order mark."""
    text, encoding = decoded(data)
    parts: list[str | Unit] = [
        plain_unit(piece, is_protected=reading.is_protected) if needs_translation(piece) else piece
        for piece in _LINE_OR_COLUMN_END.split(text)
    ]
    return SplicedText(parts, encoding, first_line=reading.first_line)


FORMATS = (Format("txt", (".txt", ".text"), read, "text/plain"),)
