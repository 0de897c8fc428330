"""Documents: files whose texts are translated and whose everything else stays, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.documents.document import Document, Format, Reading, Segment
    from transduce.documents.formats import all_formats, format_named, format_of, read_document
    from transduce.documents.pairs import Pair, Pairs, pairs_of

__all__ = [
    "Document", "Format", "Pair", "Pairs", "Reading", "Segment", "all_formats", "format_named", "format_of",
    "pairs_of", "read_document",
]  # fmt: skip

imported_on_use(__name__)
