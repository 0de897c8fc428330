"""Workbooks of Excel (XLSX): texts of cells, comments, charts and drawings; formulas and names of sheets stay.

Names of columns by which formulas and pivot tables find them stay, too: Excel calls a workbook damaged in which a
table and its first row differ.
"""

from __future__ import annotations

from collections.abc import Iterator

from transduce.documents.document import Document, Format, Reading
from transduce.documents.office_xml import (
    CHART,
    DRAWN,
    NAMESPACES,
    RUN_LANGUAGE,
    add_values,
    content_types,
    read_office_document,
    run_pieces,
    run_style,
)
from transduce.documents.package import Package
from transduce.documents.package_document import PartKind
from transduce.documents.runs import NOTHING_OPEN, Group, Marker, Piece, Style, Tags
from transduce.documents.xml_tree import Element, find_elements
from transduce.patterns import compiled_on_use
from transduce.text.markup import xml_rules
from transduce.text.markup_reading import CDATA, decoder

__all__ = ["FORMATS"]

_MAINS = ("spreadsheetml", "ms-excel")
_PLAIN = Style((), NOTHING_OPEN)
_LINE_END = compiled_on_use(r"((?:(?:_x000[Dd]_)?(?:\r\n|\r|\n|&#10;|&#x[aA];))+)")
_TEXT_ATTRIBUTES = ' xml:space="preserve"'


def _add_string(string: Element, marker: Marker) -> None:
    """Add a text of a cell or comment, plain or of runs; readings of Japanese characters stay."""
    parts: list[Piece | Group] = []
    for child in string.elements:
        if child.name == "s:t":
            parts += _lines(child, Piece("text", child.inner, child.inner_end, style=_PLAIN), NOTHING_OPEN, marker)
        elif child.name == "s:r":
            tags, style = run_style(marker, child, child.child("s:rPr"), (), text_attributes=_TEXT_ATTRIBUTES)
            contents = [each for each in child.elements if each.name == "s:t"]
            for text, piece in run_pieces(child, tags, contents):
                piece.kind, piece.style = "text", style
                parts += _lines(text, piece, style.tags, marker)
    marker.add_paragraph(parts)


def _lines(text: Element, piece: Piece, inside: Tags, marker: Marker) -> Iterator[Piece]:
    """Yield the lines of a text, and what ends them; ``inside`` is open in it."""
    raw, decode = marker.source(text.inner, text.inner_end), decoder(xml_rules())
    lines = [raw] if CDATA[0] in raw else _LINE_END.split(raw)
    if len(lines) == 1:
        piece.text = text.text
        yield piece
        return
    end = text.inner
    for number, line in enumerate(lines):
        start, end = end, end + len(line.encode())
        kind, style = ("line", None) if number % 2 else ("text", piece.style)
        part = Piece("line" if number % 2 else "text", start, end, inside, inside, "", style)
        if kind == "text":
            part.text = decode(line)
        if number == 0:
            part.start, part.before = piece.start, piece.before
        if number == len(lines) - 1:
            part.end, part.after = piece.end, piece.after
        if part.start < part.end:
            yield part


def _column_names(data: bytes) -> set[str]:
    """Return the names by which tables, and pivot tables, know their columns."""
    package, names = Package(data), set[str]()
    for part, kind in content_types(package, _MAINS).items():
        if kind.endswith(("spreadsheetml.table+xml", "pivotCacheDefinition+xml")):
            find_elements(
                package.read(part),
                ("s:tableColumn", "s:cacheField"),
                NAMESPACES,
                lambda element: names.add(element.attributes.get("name", "")),
            )
    return names


def read(data: bytes, reading: Reading) -> Document:
    """Read a workbook."""
    names = _column_names(data)

    def add_string(string: Element, marker: Marker) -> None:
        if string.text not in names:
            _add_string(string, marker)

    kinds = {  # by the end of their type, in the order of reading
        "sharedStrings+xml": PartKind(("s:si",), add_string, "text"),
        "worksheet+xml": PartKind(("s:is",), add_string, "text", only_with=b"inlineStr"),
        "spreadsheetml.comments+xml": PartKind(("s:text",), _add_string, "comment"),
        "threadedcomments+xml": PartKind(("tc:text",), add_values, "comment"),
        "officedocument.drawing+xml": DRAWN, "drawingml.chart+xml": CHART, "diagramData+xml": DRAWN,
        "diagramDrawing+xml": DRAWN,
    }  # fmt: skip
    return read_office_document(data, reading, _MAINS, kinds, {"": RUN_LANGUAGE})


_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
FORMATS = (Format("xlsx", (".xlsx", ".xlsm", ".xltx", ".xltm"), read, _MEDIA_TYPE),)
