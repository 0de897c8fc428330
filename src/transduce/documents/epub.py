"""Books of EPUB 2 and 3: chapters in the order of reading, tables of contents, title and description."""

from __future__ import annotations

import posixpath
from functools import partial
from urllib.parse import unquote

from transduce.documents import html
from transduce.documents.document import Document, Format, Reading
from transduce.documents.encodings import xml_text
from transduce.documents.html import with_language
from transduce.documents.languages import naming
from transduce.documents.office_xml import add_values
from transduce.documents.package import Package, has_type
from transduce.documents.package_document import PackageDocument, PartKind, read_part
from transduce.documents.spliced import SplicedText, with_words
from transduce.documents.xml_tree import find_elements
from transduce.errors import DataError, shown
from transduce.patterns import compiled_on_use
from transduce.text.markup import divide, xml_rules

__all__ = ["FORMATS"]

_NAMESPACES = {
    "urn:oasis:names:tc:opendocument:xmlns:container": "container",
    "http://www.idpf.org/2007/opf": "opf",
    "http://purl.org/dc/elements/1.1/": "dc",
}
_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_PROPERTIES = PartKind(("dc:title", "dc:description", "dc:subject"), add_values, "property")
_ADDRESS = compiled_on_use(r"""\bURI\s*=\s*["']/?([^"']*)""")
_LANGUAGE = compiled_on_use(r"<dc:language[^<>]*>([^<>]*)")
_CONTENTS_RULES = xml_rules(ignored=("docAuthor",))


def read(data: bytes, reading: Reading) -> Document:
    """Read a book."""
    package = Package(data)
    book = _book(package)
    members = _members(package, book)
    encryption = package.read(_ENCRYPTION).decode("utf-8", "replace") if _ENCRYPTION in package else ""
    encrypted = set(map(unquote, _ADDRESS.findall(encryption)))
    locked = next((name for name in members if name in encrypted), None)
    if locked is not None:
        raise DataError(f"{shown(locked)} in it is encrypted; only a copy without protection can be translated")
    parts: dict[str, Document] = {book: read_part(package, book, _PROPERTIES, _NAMESPACES, reading)}
    for name, kind in members.items():
        try:
            parts[name] = _READERS[kind](package.read(name), reading)
        except DataError as error:
            raise DataError(f"{shown(name)}: {error}") from None
    return PackageDocument(package, parts, {book: naming(_LANGUAGE)})


def _read_contents(data: bytes, reading: Reading) -> Document:
    """Read a table of contents of EPUB 2."""
    text, encoding = xml_text(data)
    parts = [with_words(part) for part in divide(text, _CONTENTS_RULES, is_protected=reading.is_protected)]
    named = partial(with_language, rules=_CONTENTS_RULES)
    return SplicedText(parts, encoding, "xmlcharrefreplace", with_language=named)


_READERS = {"application/xhtml+xml": html.read, "application/x-dtbncx+xml": _read_contents}


def _book(package: Package) -> str:
    """Return the name of the member that lists the others."""
    found = list[str]()
    if _CONTAINER in package:
        books = find_elements(package.read(_CONTAINER), ("container:rootfile",), _NAMESPACES)
        found = [each.attributes.get("full-path", "") for each in books]
    if not found or found[0] not in package:
        raise DataError(f"it has no {_CONTAINER} that names its book, so it is no EPUB; save it anew")
    return found[0]


def _members(package: Package, book: str) -> dict[str, str]:
    """Return the members with text and their media types, in the order of reading."""
    items, order = dict[str, tuple[str, str]](), list[str]()
    for element in find_elements(package.read(book), ("opf:item", "opf:itemref"), _NAMESPACES):
        values = element.attributes
        if element.name == "opf:itemref":
            order.append(values.get("idref", ""))
        else:
            path = posixpath.join(posixpath.dirname(book), unquote(values.get("href", "")))
            items[values.get("id", "")] = posixpath.normpath(path), values.get("media-type", "")
    ordered = [items[name] for name in [*order, *items] if name in items]
    return {name: kind for name, kind in ordered if name in package and kind in _READERS}


_MEDIA_TYPE = "application/epub+zip"
FORMATS = (Format("epub", (".epub",), read, _MEDIA_TYPE, has_type(_MEDIA_TYPE), is_archive=True),)
