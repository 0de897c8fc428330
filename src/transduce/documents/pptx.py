"""Presentations of PowerPoint (PPTX): slides with their tables, charts and diagrams, notes, comments."""

from __future__ import annotations

import re

from transduce.documents.document import Document, Format, Reading
from transduce.documents.languages import script_of
from transduce.documents.office_xml import (
    CHART,
    DRAWN,
    RUN_LANGUAGE,
    add_values,
    content_types,
    has_main,
    office_document,
)
from transduce.documents.package import Package
from transduce.documents.package_document import PartKind
from transduce.documents.runs import Marker
from transduce.documents.xml_tree import Element
from transduce.patterns import compiled_on_use

__all__ = ["FORMATS"]

_MAINS = ("presentationml", "ms-powerpoint")
_PARAGRAPHS = compiled_on_use(r"<(?:\w+:)?(pPr|defPPr|lvl[1-9]pPr)\b[^<>]*?(?=/?>)")
_DIRECTION = compiled_on_use(r"""\srtl=["'][^"']*["']""")


def _turned(text: str, language: str) -> str:
    """Return properties of paragraphs that begin on the right, for a language from right to left."""

    def turned(match: re.Match[str]) -> str:
        tag = _DIRECTION.sub("", match[0]).replace('algn="l"', 'algn="r"')
        is_default = match[1] != "pPr" and "algn=" not in tag
        return f'{tag} rtl="1"' + ' algn="r"' * is_default

    return _PARAGRAPHS.sub(turned, text) if script_of(language) == "complex" else text


def _named(text: str, language: str) -> str:
    """Return the defaults of a presentation, which name a language."""
    return _turned(RUN_LANGUAGE(text, language), language)


def _add_fixed(shape: Element, marker: Marker) -> None:
    """Add the texts of a shape of a master slide, unless it only shows where the texts of slides are."""
    if not any(shape.within(("p:ph",))):
        for paragraph in shape.within(DRAWN.names):
            DRAWN.add(paragraph, marker)


def _add_comment(element: Element, marker: Marker) -> None:
    (DRAWN.add if element.name in DRAWN.names else add_values)(element, marker)


_FIXED = PartKind(("p:sp",), _add_fixed)
_COMMENTS = PartKind((*DRAWN.names, "p:text"), _add_comment)
_KINDS = {  # by the end of their type, in the order of reading
    "presentationml.slide+xml": DRAWN, "notesSlide+xml": DRAWN, "presentationml.comments+xml": _COMMENTS,
    "powerpoint.comments+xml": _COMMENTS, "drawingml.chart+xml": CHART, "diagramData+xml": DRAWN,
    "diagramDrawing+xml": DRAWN, "slideLayout+xml": _FIXED, "slideMaster+xml": _FIXED,
}  # fmt: skip


def read(data: bytes, reading: Reading) -> Document:
    """Read a presentation."""
    turned = dict.fromkeys(
        ("presentationml.slide+xml", "notesSlide+xml", "slideMaster+xml", "slideLayout+xml"), _turned
    )
    languages = {"": RUN_LANGUAGE, "presentation.main+xml": _named, **turned}
    package = Package(data)
    return office_document(package, content_types(package, _MAINS), reading, _KINDS, languages)


_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
_ENDINGS = (".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm")
FORMATS = (Format("pptx", _ENDINGS, read, _MEDIA_TYPE, has_main(_MAINS), is_archive=True),)
