"""Workbooks of Excel (XLSX): texts of cells, headers, comments, charts, drawings; formulas and names of sheets stay."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from transduce.documents.document import Document, Format, Reading, Segment
from transduce.documents.office_xml import (
    CHART,
    DRAWN,
    NAMESPACES,
    RUN_LANGUAGE,
    add_attribute,
    add_values,
    content_types,
    has_main,
    office_document,
    run_pieces,
    run_style,
)
from transduce.documents.package import Package
from transduce.documents.package_document import PackageDocument, PartKind, read_part
from transduce.documents.runs import NOTHING_OPEN, Group, MarkedPart, Marker, Piece, Style, Tags
from transduce.documents.xml_tree import Element, find_elements
from transduce.patterns import compiled_on_use
from transduce.text.markup import xml_rules
from transduce.text.markup_reading import CDATA, decoder, escaped

__all__ = ["FORMATS"]

_MAINS = ("spreadsheetml", "ms-excel")
_PLAIN = Style((), NOTHING_OPEN)
_TEXT_ATTRIBUTES = ' xml:space="preserve"'
_LINE_END = compiled_on_use(r"((?:(?:_x000[Dd]_)?(?:\r\n|\r|\n|&#10;|&#x[aA];))+)")
# In headers and footers: the parts of a line, fonts and colours, the number of the page and the like.
_CODE = compiled_on_use(r"""(&amp;(?:(?:"|&quot;).*?(?:"|&quot;)|K[0-9A-F+-]{5,6}|\d+|[A-Z](?:[+-]\d+)?))""")
_HEADERS = tuple(f"s:{which}{kind}" for which in ("odd", "even", "first") for kind in ("Header", "Footer"))
_TAG = compiled_on_use("<[^<>]*>")
_NOT_IN_NAMES = frozenset("[]#'@\n")  # written otherwise in formulas
_ESCAPED_END = compiled_on_use("(?:_x000[dD]_)?_x000[aA]_")  # of a line
_COLUMN = re.compile(rb"[\[@]([^][@#']+)\]")  # in a formula


def _add_string(string: Element, marker: Marker) -> None:
    """Add a text of a cell or comment, plain or of runs; readings of Japanese characters stay."""
    parts: list[Piece | Group] = []
    for child in string.elements:
        if child.name == "s:t":
            whole = Piece("text", child.inner, child.inner_end, style=_PLAIN)
            parts += _lines(child, whole, NOTHING_OPEN, marker)
        elif child.name == "s:r":
            tags, style = run_style(marker, child, child.child("s:rPr"), (), text_attributes=_TEXT_ATTRIBUTES)
            contents = [each for each in child.elements if each.name == "s:t"]
            for text, piece in run_pieces(child, tags, contents):
                piece.kind, piece.style = "text", style
                parts += _lines(text, piece, style.tags, marker)
    marker.add_paragraph(parts)


def _lines(text: Element, whole: Piece, inside: Tags, marker: Marker) -> Iterator[Piece]:
    """Yield the lines of a text, and what ends them; ``inside`` is open in it."""
    raw = marker.source(text.inner, text.inner_end)
    if CDATA[0] in raw or _LINE_END.search(raw) is None:
        whole.text = text.text
        yield whole
        return
    pieces = list(_divided(raw, text.inner, _LINE_END.split(raw), inside, whole.style))
    pieces[0].start, pieces[0].before = whole.start, whole.before
    pieces[-1].end, pieces[-1].after = whole.end, whole.after
    yield from pieces


def _divided(raw: str, start: int, texts: Sequence[str], inside: Tags, style: Style | None) -> Iterator[Piece]:
    """Yield pieces of a text that begins at a byte; every second one is no text."""
    decode, end = decoder(xml_rules()), start
    for number, each in enumerate(texts):
        start, end = end, end + len(each.encode())
        if number % 2:
            yield Piece("line", start, end, inside, inside)
        else:
            yield Piece("text", start, end, inside, inside, decode(each), style)


def _add_header(header: Element, marker: Marker) -> None:
    """Add the texts between the codes of a header or footer."""
    raw = marker.source(header.inner, header.inner_end)
    pieces = list(_divided(raw, header.inner, _CODE.split(raw), NOTHING_OPEN, _PLAIN))
    for piece in pieces:
        if piece.kind == "line":
            code = marker.source(piece.start, piece.end).removeprefix("&amp;")
            piece.kind, piece.is_shown = "break" if code in ("L", "C", "R") else "atom", code[0] in "PNDTAFZ"
    marker.add_paragraph(pieces)


_TABLE, _PIVOT = "spreadsheetml.table+xml", "pivotCacheDefinition+xml"
_WITH_FORMULAS = ("worksheet+xml", "main+xml", _TABLE, "chart+xml")
_OTHER_KINDS = {  # by the end of their type, in the order of reading
    "spreadsheetml.comments+xml": PartKind(("s:text",), _add_string, "comment"),
    "threadedcomments+xml": PartKind(("tc:text",), add_values, "comment"),
    "officedocument.drawing+xml": DRAWN, "drawingml.chart+xml": CHART, "diagramData+xml": DRAWN,
    "diagramDrawing+xml": DRAWN,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Workbook:
    """A workbook. Excel calls one damaged in which the columns of a table have other names than the cells above them.

    So columns are renamed as their cells are. Two of a table that would have the same name stay, with their cells.
    """

    document: PackageDocument
    tables: Mapping[str, MarkedPart]  # the names of columns are their units
    cells: Collection[str]  # the parts with the texts of cells
    fixed: Collection[str]  # the names of columns that stay

    @property
    def segments(self) -> list[Segment]:
        """The texts of all parts."""
        return self.document.segments

    def written(self, targets: Sequence[str | None], *, tgt_language: str = "") -> bytes:
        """Return the workbook with translations."""
        columns = {name: [_plain(each.unit.raw) for each in part.segments] for name, part in self.tables.items()}
        texts = [
            (_plain(segment.unit.raw), name in self.cells)
            for name, part in self.document.parts.items()
            for segment in part.segments
        ]
        pairs = list(zip(texts, targets, strict=True))
        renamed = {text: _plain(target) for (text, is_cell), target in pairs if is_cell and target is not None}
        kept = _kept(columns.values(), renamed, self.fixed)
        targets = [None if text in kept else target for (text, _), target in pairs]
        replaced = self.document.replaced(targets, tgt_language=tgt_language)
        for name, part in self.tables.items():
            names = [renamed.get(each) if each not in kept else None for each in columns[name]]
            if any(each is not None for each in names):
                replaced[name] = part.written([each and escaped(each).replace('"', "&quot;") for each in names])
        return self.document.package.written(replaced)


def _plain(markup: str) -> str:
    """Return the characters of a text with tags."""
    return decoder(xml_rules())(_TAG.sub("", markup))


def _kept(tables: Iterable[Sequence[str]], renamed: Mapping[str, str], fixed: Collection[str]) -> set[str]:
    """Return the names of columns that stay: fixed ones, and where another of the table has or gets the same name."""
    tables, kept = list(tables), set(fixed)
    while True:
        n_kept = len(kept)
        for names in tables:
            results = [name if name in kept else renamed.get(name, name) for name in names]
            counts = Counter(result.casefold() for result in results)
            kept.update(name for name, result in zip(names, results, strict=True) if counts[result.casefold()] > 1)
        if len(kept) == n_kept:
            return kept


def _fixed_names(package: Package, types: Mapping[str, str]) -> set[str]:
    """Return the names of columns that stay: those that pivot tables or formulas know, and those of several lines."""
    fixed, names = set[str](), set[str]()
    for part, kind in types.items():
        for ending, element, found in ((_TABLE, "s:tableColumn", names), (_PIVOT, "s:cacheField", fixed)):
            if kind.endswith(ending):
                for each in find_elements(package.read(part), (element,), NAMESPACES):
                    found.add(_ESCAPED_END.sub("\n", each.attributes.get("name", "")))
    if names:
        fixed |= {name for name in names if not _NOT_IN_NAMES.isdisjoint(name)}
        decode = decoder(xml_rules())
        for part in (part for part, kind in types.items() if kind.endswith(_WITH_FORMULAS)):
            named = {match[1] for match in _COLUMN.finditer(package.read(part, is_large=True))}
            fixed |= names & {decode(each.decode("utf-8", "replace")) for each in named}
    return fixed


def read(data: bytes, reading: Reading) -> Document:
    """Read a workbook."""
    package = Package(data)
    types = content_types(package, _MAINS)
    fixed = _fixed_names(package, types)

    def add(element: Element, marker: Marker) -> None:
        if element.name in _HEADERS:
            _add_header(element, marker)
        elif element.text not in fixed:
            _add_string(element, marker)

    sheet = PartKind(("s:is", *_HEADERS), add, "text", only_with=(b"inlineStr", b"headerFooter"))
    kinds = {"sharedStrings+xml": PartKind(("s:si",), add, "text"), "worksheet+xml": sheet, **_OTHER_KINDS}
    document = office_document(package, types, reading, kinds, {"": RUN_LANGUAGE})
    column = PartKind(("s:tableColumn",), lambda column, marker: add_attribute(column, "name", marker))
    tables = {
        name: read_part(package, name, column, NAMESPACES, Reading())
        for name, kind in types.items()
        if kind.endswith(_TABLE)
    }
    cells = [name for name, kind in types.items() if kind.endswith(("sharedStrings+xml", "worksheet+xml"))]
    return Workbook(document, tables, cells, fixed)


_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
FORMATS = (Format("xlsx", (".xlsx", ".xlsm", ".xltx", ".xltm"), read, _MEDIA_TYPE, has_main(_MAINS), is_archive=True),)
