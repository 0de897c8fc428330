"""Documents of OpenDocument (ODT, ODS, ODP): paragraphs, cells, notes, comments, drawings, charts, properties.

Flat ones (FODT, FODS, FODP) have all of it in one XML document.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from transduce.documents.document import Document, Format, Reading
from transduce.documents.languages import script_of, with_language
from transduce.documents.office_xml import add_values, canonical
from transduce.documents.package import Package, has_type
from transduce.documents.package_document import PackageDocument, PartKind, marked_part, read_part
from transduce.documents.runs import NOTHING_OPEN, Group, Marker, Piece, Style, Tags, first_of, last_of
from transduce.documents.xml_tree import Element, Text
from transduce.errors import DataError
from transduce.patterns import compiled_on_use

__all__ = ["FORMATS"]

_OASIS = "urn:oasis:names:tc:opendocument:xmlns:"
_NAMESPACES = {
    **{f"{_OASIS}{name}:1.0": name for name in ("office", "text", "table", "style", "presentation", "meta")},
    f"{_OASIS}drawing:1.0": "draw",
    f"{_OASIS}svg-compatible:1.0": "svg",
    f"{_OASIS}xsl-fo-compatible:1.0": "fo",
    "http://openoffice.org/2009/office": "officeooo",
    "http://purl.org/dc/elements/1.1/": "dc",
}
_PARAGRAPHS = ("text:p", "text:h")
_VALUES = ("svg:title", "svg:desc", "presentation:header-decl", "presentation:footer-decl", "text:index-title-template")
_DELETED = ("text:tracked-changes", "table:tracked-changes")
_TEXTS = (*_PARAGRAPHS, *_VALUES, *_DELETED, "table:table-cell")
_CHART_TEXTS = (*_PARAGRAPHS, "table:table-cell")  # descriptions name cells there
_HIDDEN = frozenset(  # elements of a paragraph that show nothing where they stand
    "text:bookmark text:bookmark-start text:bookmark-end text:reference-mark text:reference-mark-start"
    " text:reference-mark-end text:change text:change-start text:change-end office:annotation office:annotation-end"
    " text:alphabetical-index-mark text:alphabetical-index-mark-start text:alphabetical-index-mark-end text:toc-mark"
    " text:toc-mark-start text:toc-mark-end text:user-index-mark text:user-index-mark-start text:user-index-mark-end"
    .split()
)  # fmt: skip
# Of styles, what makes no difference to be seen: records of changes, languages.
_UNSEEN = frozenset(
    "officeooo:rsid officeooo:paragraph-rsid fo:language fo:country style:language-asian style:country-asian"
    " style:language-complex style:country-complex".split()
)
_SPACES = compiled_on_use("[ \t\r\n]+")
_MAX_SPACES = 1_000
_FLAT_ROOT = re.compile(rb"<[\w.-]+:document\s")
_LANGUAGES = {  # by kind of script
    script: compiled_on_use(
        rf"""<style:text-properties\b[^<>]*?\s{language}=["'](?!zxx|none)([^"']*)["'](?:[^<>]*?\s{country}=["']([^"']*))?"""
    )
    for script, language, country in (
        ("western", "fo:language", "fo:country"),
        ("asian", "style:language-asian", "style:country-asian"),
        ("complex", "style:language-complex", "style:country-complex"),
    )
}
_STRING_VALUE = compiled_on_use(r"""\s[\w.-]+:string-value\s*=\s*(?:"[^"]*"|'[^']*')""")
_DIRECTION = compiled_on_use(r"""(<style:page-layout-properties\b[^<>]*?\sstyle:writing-mode=["'])lr-tb""")
_PROPERTIES = PartKind(("dc:title", "dc:subject", "dc:description", "meta:keyword"), add_values, "property")


class _Reader:
    """Reads a part whose automatic styles stand before its texts."""

    def __init__(self, texts: Collection[str]) -> None:
        self._texts = texts  # the elements with text
        self._styles: dict[str, object] = {}  # by name, () for one that shows nothing

    def add(self, element: Element, marker: Marker) -> None:
        """Add the texts of an element."""
        match element.name:
            case "style:style":
                self._add_style(element)
            case "table:table-cell" if self._is_computed(element):
                for comment in element.within(("office:annotation",)):
                    self._add_within(comment, marker)
            case "text:p" | "text:h":
                self._add_within(element, marker)
                prefix = marker.source(element.start, element.inner)[1:].partition(":")[0]
                parts = self._parts(element, marker, [])
                marker.add_paragraph(parts, space=lambda n: f'<{prefix}:s {prefix}:c="{n}"/>')
            case "table:table-cell":
                n_units = marker.n_units
                self._add_within(element, marker)
                if "office:string-value" in element.attributes:
                    marker.drop_if_translated(*self._value_span(element, marker), marker.n_units - n_units)
            case name if name in (*_VALUES, *_PROPERTIES.names):
                add_values(element, marker)

    def _add_within(self, element: Element, marker: Marker) -> None:
        for inner in element.within(self._texts):
            self.add(inner, marker)

    def _value_span(self, cell: Element, marker: Marker) -> tuple[int, int]:
        """Return the start and end of the attribute that goes before the paragraphs of a cell."""
        tag = marker.source(cell.start, cell.inner)
        match = _STRING_VALUE.search(tag)
        start, end = match.span() if match else (0, 0)
        return cell.start + len(tag[:start].encode()), cell.start + len(tag[:end].encode())

    def _is_computed(self, cell: Element) -> bool:
        """Whether a cell is not text that someone wrote."""
        return "table:formula" in cell.attributes or cell.attributes.get("office:value-type", "string") != "string"

    def _add_style(self, element: Element) -> None:
        parts = [canonical(child, _UNSEEN) for child in element.elements]
        parent = element.attributes.get("style:parent-style-name", "")
        seen = [part for part in parts if len(part) > 1]
        self._styles[element.attributes.get("style:name", "")] = (parent, *seen) if parent or seen else ()

    def _parts(self, element: Element, marker: Marker, spans: list[Element]) -> list[Piece | Group]:
        """Return the parts of a paragraph, of a link, or of the innermost of some spans."""
        inside, style = self._open(spans, marker)
        parts: list[Piece | Group] = []
        for child in element.children:
            if isinstance(child, Text):
                text = _SPACES.sub(" ", child.value)
                parts.append(Piece("text", child.start, child.end, inside, inside, text, style))
            elif child.name == "text:span":
                within = self._parts(child, marker, [*spans, child])
                if within:
                    first, last = first_of(within[0]), last_of(within[-1])
                    first.start, first.before = child.start, inside
                    last.end, last.after = child.end, inside
                    parts += within
            elif child.name in ("text:a", "text:meta"):
                parts.append(self._group(child, child, inside, marker))
            elif child.name == "text:ruby" and (base := child.child("text:ruby-base")) is not None:
                parts.append(self._group(child, base, inside, marker))
            elif child.name != "text:soft-page-break":
                parts.append(self._piece(child, inside, style))
        return parts

    def _group(self, element: Element, content: Element, inside: Tags, marker: Marker) -> Group:
        """Return an element of a paragraph of which the content has text."""
        opening = Piece("atom", element.start, content.inner, inside)
        closing = Piece("atom", content.inner_end, element.end, after=inside)
        return Group(opening, self._parts(content, marker, []), closing)

    def _piece(self, child: Element, inside: Tags, style: Style) -> Piece:
        piece = Piece("atom", child.start, child.end, inside, inside)
        match child.name:
            case "text:s":
                number = child.attributes.get("text:c", "1")
                n_spaces = int(number) if number.isdecimal() and len(number) < 4 else _MAX_SPACES
                piece.kind, piece.text, piece.style = "text", " " * n_spaces, style
            case "text:tab":
                piece.kind = "break"
            case "text:line-break":
                piece.kind = "line"
            case "text:note":
                piece.is_note = True
            case name if name.startswith("draw:"):
                piece.is_shown = child.attributes.get("text:anchor-type") == "as-char"
            case name:
                piece.is_shown = name not in _HIDDEN
        return piece

    def _open(self, spans: list[Element], marker: Marker) -> tuple[Tags, Style]:
        """Return what is open inside some spans, and the style of their text."""
        if not spans:
            return NOTHING_OPEN, Style((), NOTHING_OPEN)
        all_tags, seen, key = list[Tags](), list[Tags](), list[object]()
        for span in spans:
            name = span.attributes.get("text:style-name", "")
            raw = marker.source(span.start, span.inner)
            tags = Tags(raw, f"</{raw[1:].split(None, 1)[0].rstrip('>')}>")
            all_tags.append(tags)
            properties = self._styles.get(name, (name,))
            if properties:
                seen.append(tags)
                key.append(properties)
        return _nested(all_tags), Style(tuple(key), _nested(seen))


def _nested(tags: list[Tags]) -> Tags:
    opening = "".join(each.opening for each in tags)
    return Tags(opening, "".join(each.closing for each in reversed(tags)))


def _named(text: str, language: str) -> str:
    """Return styles that name a language; pages of one from right to left begin on the right."""
    script = script_of(language)
    text = with_language(text, _LANGUAGES[script], language)
    return _DIRECTION.sub(r"\1rl-tb", text) if script == "complex" else text


def _text_members(package: Package) -> Iterator[tuple[str, PartKind]]:
    """Yield the members with text: the document, its headers and footers, charts in it, and its properties."""
    charts = [name for name in package.names if name.endswith("/content.xml")]
    for name in ["content.xml", "styles.xml", *charts]:
        texts = _CHART_TEXTS if name in charts else _TEXTS
        if name in package:
            yield name, PartKind((*texts, "style:style"), _Reader(texts).add)
    if "meta.xml" in package:
        yield "meta.xml", _PROPERTIES


def read(data: bytes, reading: Reading) -> Document:
    """Read a document of OpenDocument."""
    package = Package(data)
    if "content.xml" not in package:
        raise DataError("it lacks content.xml, so it is no document of OpenDocument; save it anew")
    manifest = "META-INF/manifest.xml"
    if manifest in package and b"encryption-data" in package.read(manifest):
        raise DataError("it is encrypted; save it without a password")
    parts = {name: read_part(package, name, kind, _NAMESPACES, reading) for name, kind in _text_members(package)}
    return PackageDocument(package, parts, {name: _named for name in ("styles.xml",) if name in package})


def read_flat(data: bytes, reading: Reading) -> Document:
    """Read a flat document of OpenDocument."""
    if _FLAT_ROOT.search(data[:2000]) is None:
        raise DataError("its root is not <office:document>, so it is no flat document of OpenDocument; save it anew")
    kind = PartKind((*_TEXTS, *_PROPERTIES.names, "style:style"), _Reader(_TEXTS).add)
    return replace(marked_part(data, kind, _NAMESPACES, reading), named=_named)


_MEDIA_TYPE = "application/vnd.oasis.opendocument."
_KINDS = {
    "text": (".odt", ".ott"),
    "spreadsheet": (".ods", ".ots"),
    "presentation": (".odp", ".otp"),
    "graphics": (".odg", ".otg"),
}
FORMATS = (
    *(
        Format(endings[0][1:], endings, read, _MEDIA_TYPE + kind, has_type(_MEDIA_TYPE + kind), is_archive=True)
        for kind, endings in _KINDS.items()
    ),
    *(
        Format(f"f{endings[0][1:]}", (f".f{endings[0][1:]}",), read_flat, f"{_MEDIA_TYPE}{kind}-flat-xml")
        for kind, endings in _KINDS.items()
    ),
)
