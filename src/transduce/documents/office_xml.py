"""What the formats of Office Open XML (ECMA-376) share: parts by type, runs, paragraphs of drawings, properties."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from transduce.documents.document import Reading
from transduce.documents.languages import NamingLanguage, naming
from transduce.documents.package import Package, is_package
from transduce.documents.package_document import PackageDocument, PartKind, read_part
from transduce.documents.runs import NOTHING_OPEN, Group, Marker, Piece, Style, Tags
from transduce.documents.xml_tree import Element, find_elements
from transduce.errors import DataError
from transduce.patterns import compiled_on_use

__all__ = [
    "ALTERNATIVE_TEXTS", "CHART", "DRAWN", "NAMESPACES", "RUN_LANGUAGE", "add_alternative_text", "add_attribute",
    "add_drawn", "add_values", "content_types", "has_main", "office_document", "run_pieces", "run_style", "tag_name",
]  # fmt: skip

_HOSTS = "http://schemas.openxmlformats.org/", "http://purl.oclc.org/ooxml/"  # the second in strict documents
_FAMILIES = {
    "w": ("wordprocessingml/2006/main", "wordprocessingml/main"),
    "s": ("spreadsheetml/2006/main", "spreadsheetml/main"),
    "p": ("presentationml/2006/main", "presentationml/main"),
    "a": ("drawingml/2006/main", "drawingml/main"),
    "c": ("drawingml/2006/chart", "drawingml/chart"),
    "wp": ("drawingml/2006/wordprocessingDrawing", "drawingml/wordprocessingDrawing"),
    "xdr": ("drawingml/2006/spreadsheetDrawing", "drawingml/spreadsheetDrawing"),
    "r": ("officeDocument/2006/relationships", "officeDocument/relationships"),
}
NAMESPACES: Mapping[str, str] = {
    **{host + path: prefix for prefix, paths in _FAMILIES.items() for host, path in zip(_HOSTS, paths, strict=True)},
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
    "http://schemas.openxmlformats.org/package/2006/content-types": "ct",
    "http://schemas.openxmlformats.org/package/2006/metadata/core-properties": "cp",
    "http://schemas.microsoft.com/office/word/2010/wordml": "w14",
    "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments": "tc",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://www.w3.org/XML/1998/namespace": "xml",
}
RUN_LANGUAGE = naming(  # of drawings
    compiled_on_use(r"""<(?:\w+:)?(?:rPr|defRPr|endParaRPr)\b[^<>]*?\slang=["']([^"']*)""")
)
ALTERNATIVE_TEXTS = ("wp:docPr", "p:cNvPr", "xdr:cNvPr")  # elements that describe a picture
_CONTENT_TYPES = "[Content_Types].xml"
_TAG_NAME = compiled_on_use(r"<([^\s/>]+)")
_ATTRIBUTE = compiled_on_use(r"""\s([^\s=]+)\s*=\s*(["'])((?:(?!\2).)*)\2""", re.DOTALL)
# Of a run of a drawing, what makes no difference to be seen: languages, results of the spelling check, fine spacing.
_UNSEEN = frozenset(("lang", "altLang", "dirty", "err", "noProof", "smtClean", "smtId", "kern", "spc", "bmk"))


def add_values(element: Element, marker: Marker) -> None:
    """Add an element that has nothing but text."""
    if not any(element.elements):
        marker.add_value(element.inner, element.inner_end, element.text)


CORE_PROPERTIES = PartKind(
    ("dc:title", "dc:subject", "dc:description", "cp:keywords", "cp:category"), add_values, "property"
)


def office_document(
    package: Package,
    types: Mapping[str, str],
    reading: Reading,
    kinds: Mapping[str, PartKind],
    languages: Mapping[str, NamingLanguage],
) -> PackageDocument:
    """Read the parts of a package, whose ``content_types`` are given.

    ``kinds`` of parts are found by the end of their type. ``languages`` are, by kind as well, what names the language
    of texts; "" is that of translated runs.
    """
    kinds = {**kinds, "core-properties+xml": CORE_PROPERTIES}
    order = list(kinds)
    found = list[tuple[int, list[int | str], str]]()
    for name, type_ in types.items():
        ending = next((each for each in order if type_.endswith(each)), None)
        if ending is not None:
            found.append((order.index(ending), _natural(name), name))
    parts = {
        name: read_part(package, name, kinds[order[kind]], NAMESPACES, reading, languages.get(""))
        for kind, _, name in sorted(found)
    }
    named = {
        name: named
        for name, type_ in types.items()
        for ending, named in languages.items()
        if ending and type_.endswith(ending)
    }
    return PackageDocument(package, parts, named)


def content_types(package: Package, mains: tuple[str, str]) -> dict[str, str]:
    """Return the type of each part of its own, and check that it is a document of a format."""
    if _CONTENT_TYPES not in package:
        raise DataError(f"it lacks {_CONTENT_TYPES}, so it is no document of Office Open XML; save it anew")
    names, types = {name.lower(): name for name in package.names}, dict[str, str]()
    for element in find_elements(package.read(_CONTENT_TYPES), ("ct:Override",), NAMESPACES):
        name = names.get(element.attributes.get("PartName", "").lstrip("/").lower())
        if name is not None:
            types[name] = element.attributes.get("ContentType", "")
    if not any(each.endswith("main+xml") and main in each for main in mains for each in types.values()):
        raise DataError(f"it has no part of the type {mains[0]}, so it is a document of another format")
    return types


def has_main(mains: tuple[str, str]) -> Callable[[bytes], bool]:
    """Return what tells by its bytes whether a file is a package whose main part has one of the types."""

    def recognises(data: bytes) -> bool:
        if not is_package(data):
            return False
        try:
            return bool(content_types(Package(data), mains))
        except DataError:
            return False

    return recognises


def _natural(name: str) -> list[int | str]:
    """Return what sorts slide2 before slide10."""
    return [int(piece) if number % 2 else piece for number, piece in enumerate(re.split("([0-9]{1,9})", name))]


def tag_name(marker: Marker, element: Element) -> str:
    """Return the name of an element as it is in the document."""
    match = _TAG_NAME.match(marker.source(element.start, element.inner))
    assert match is not None
    return match[1]


def canonical(element: Element, unseen: Collection[str]) -> tuple[object, ...]:
    """Return what is equal for elements with the same children and attributes, but for those with some names."""
    attributes = sorted(item for item in element.attributes.items() if item[0] not in unseen)
    children = (canonical(child, unseen) for child in element.elements if child.name not in unseen)
    return element.name, *attributes, *children


def run_style(
    marker: Marker,
    run: Element,
    properties: Element | None,
    unseen: Collection[str],
    *,
    text_attributes: str = "",
    is_raised: bool = False,
) -> tuple[Tags, Style]:
    """Return what is open inside a run, and its style, in which its text is open, too.

    ``unseen`` are the names of properties that make no style another.
    """
    name = tag_name(marker, run)
    text_name = name.removesuffix("r") + "t"
    raw = "" if properties is None else marker.source(properties.start, properties.end)
    tags = Tags(f"<{name}>{raw}", f"</{name}>")
    opened = Tags(f"{tags.opening}<{text_name}{text_attributes}>", f"</{text_name}>{tags.closing}")
    key = () if properties is None else canonical(properties, unseen)[1:]
    return tags, Style(key, opened, is_raised)


def run_pieces(run: Element, tags: Tags, contents: Sequence[Element]) -> Iterator[tuple[Element, Piece]]:
    """Yield the contents of a run as atoms; the first begins where the run does, the last ends there."""
    last = len(contents) - 1
    for index, each in enumerate(contents):
        start, before = (run.start, NOTHING_OPEN) if index == 0 else (each.start, tags)
        end, after = (run.end, NOTHING_OPEN) if index == last else (each.end, tags)
        yield each, Piece("atom", start, end, before, after)


def add_alternative_text(element: Element, marker: Marker) -> None:
    """Add the text that describes a picture."""
    add_attribute(element, "descr", marker)


def add_attribute(element: Element, name: str, marker: Marker) -> None:
    """Add the value of an attribute, if the element has it."""
    tag = marker.source(element.start, element.inner)
    match = next((each for each in _ATTRIBUTE.finditer(tag) if each[1] == name), None)
    if match is not None and name in element.attributes:
        start = element.start + len(tag[: match.start(3)].encode())
        end = start + len(match[3].encode())
        marker.add_value(start, end, element.attributes[name], quote=match[2])


def add_drawn(paragraph: Element, marker: Marker) -> None:
    """Add a paragraph of a drawing (DrawingML)."""
    parts: list[Piece | Group] = []
    for child in paragraph.elements:
        if child.name == "a:r":
            properties = child.child("a:rPr")
            raised = properties is not None and properties.attributes.get("baseline", "0")[:1] not in ("0", "-")
            tags, style = run_style(marker, child, properties, _UNSEEN, is_raised=raised)
            contents = [each for each in child.elements if each.name == "a:t"]
            for text, piece in run_pieces(child, tags, contents):
                piece.kind, piece.text, piece.style = "text", text.text, style
                parts.append(piece)
        elif child.name == "a:br":
            parts.append(Piece("line", child.start, child.end))
        elif child.name not in ("a:pPr", "a:endParaRPr"):
            parts.append(Piece("atom", child.start, child.end))
    marker.add_paragraph(parts)


def _add_drawing(element: Element, marker: Marker) -> None:
    (add_drawn if element.name == "a:p" else add_alternative_text)(element, marker)


def _add_chart_text(element: Element, marker: Marker) -> None:
    if element.name == "a:p":
        add_drawn(element, marker)
    else:  # names of series and categories, as they were last read from the cells
        for value in element.within(("c:v",)):
            add_values(value, marker)


DRAWN = PartKind(("a:p", *ALTERNATIVE_TEXTS), _add_drawing)
CHART = PartKind(("a:p", "c:strCache", "c:multiLvlStrCache"), _add_chart_text)
