"""Documents: files whose texts are translated and whose everything else stays, byte for byte."""

from transduce.documents.document import Document, Format, Reading, Segment
from transduce.documents.formats import all_formats, format_named, format_of, read_document

__all__ = ["Document", "Format", "Reading", "Segment", "all_formats", "format_named", "format_of", "read_document"]
