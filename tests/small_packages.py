"""Small documents that are zip archives, from the XML of their texts; and their translations."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import numpy as np

from transduce.documents import read_document
from transduce.text import word_spans

OFFICE = "application/vnd.openxmlformats-officedocument"
_SCHEMAS = "http://schemas.openxmlformats.org"
NAMESPACES = " ".join(
    f'xmlns:{prefix}="{name}"'
    for prefix, name in {
        "w": f"{_SCHEMAS}/wordprocessingml/2006/main",
        "a": f"{_SCHEMAS}/drawingml/2006/main",
        "p": f"{_SCHEMAS}/presentationml/2006/main",
        "c": f"{_SCHEMAS}/drawingml/2006/chart",
        "wp": f"{_SCHEMAS}/drawingml/2006/wordprocessingDrawing",
        "r": f"{_SCHEMAS}/officeDocument/2006/relationships",
        "mc": f"{_SCHEMAS}/markup-compatibility/2006",
        "cp": f"{_SCHEMAS}/package/2006/metadata/core-properties",
        "dc": "http://purl.org/dc/elements/1.1/",
    }.items()
)
_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
_ODF = " ".join(
    f'xmlns:{prefix}="{_OASIS}:{name}:1.0"'
    for prefix, name in {
        "office": "office", "text": "text", "table": "table", "style": "style", "draw": "drawing", "meta": "meta",
        "fo": "xsl-fo-compatible", "svg": "svg-compatible",
    }.items()
) + ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:officeooo="http://openoffice.org/2009/office"'  # fmt: skip


def translated(data: bytes, targets: Mapping[str, str], part: str, *, name: str, tgt_language: str = "") -> str:
    """Translate texts of a document word by word, and return a part."""
    document = read_document(data, name)
    results = list[str | None]()
    for segment in document.segments:
        target, unit = targets.get(segment.unit.text), segment.unit
        if target is not None:
            words = word_spans(target)
            weights_XY = np.eye(len(words), len(word_spans(unit.text)), dtype=np.float32)
            results.append(unit.put_back(target, words, weights_XY))
        else:
            results.append(None)
    assert set(targets) <= {segment.unit.text for segment in document.segments}
    written = zipfile.ZipFile(io.BytesIO(document.written(results, tgt_language=tgt_language)))
    assert written.testzip() is None
    return written.read(part).decode()


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    """An archive whose first member is stored, as that of OpenDocument and EPUB is."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, content) in enumerate(members.items()):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED if number else zipfile.ZIP_STORED)
    return buffer.getvalue()


def office(types: Mapping[str, str], parts: Mapping[str, str | bytes]) -> bytes:
    """A package of Office Open XML; types end as those of their parts do."""
    overrides = "".join(f'<Override PartName="/{name}" ContentType="{OFFICE}.{kind}"/>' for name, kind in types.items())
    names = f'<Types xmlns="{_SCHEMAS}/package/2006/content-types">{overrides}</Types>'
    return zipped({"[Content_Types].xml": names, **parts})


def docx(body: str, **parts: str) -> bytes:
    """A document of Word; ``parts`` by their kind: header, footnotes, styles."""
    main = f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>"
    types = {"word/document.xml": "wordprocessingml.document.main+xml", "docProps/core.xml": "core-properties+xml"}
    types |= {f"word/{kind}.xml": f"wordprocessingml.{kind}+xml" for kind in parts}
    others = {f"word/{kind}.xml": f"<w:x {NAMESPACES}>{text}</w:x>" for kind, text in parts.items()}
    return office(types, {"word/document.xml": main, "docProps/core.xml": CORE, **others})


def pptx(slide: str, notes: str = "") -> bytes:
    """A presentation with a slide."""
    types = {
        "ppt/presentation.xml": "presentationml.presentation.main+xml",
        "ppt/slides/slide1.xml": "presentationml.slide+xml",
        "ppt/notesSlides/notesSlide1.xml": "presentationml.notesSlide+xml",
    }
    presentation = f'<p:presentation {NAMESPACES}><a:defRPr lang="en-US"/></p:presentation>'
    parts = {
        "ppt/slides/slide1.xml": f"<p:sld {NAMESPACES}>{slide}</p:sld>",
        "ppt/notesSlides/notesSlide1.xml": f"<p:notes {NAMESPACES}>{notes}</p:notes>",
    }
    return office(types, {"ppt/presentation.xml": presentation, **parts})


def xlsx(strings: str, sheet: str = "", table: str = "") -> bytes:
    """A workbook."""
    types = {
        "xl/workbook.xml": "spreadsheetml.sheet.main+xml",
        "xl/sharedStrings.xml": "spreadsheetml.sharedStrings+xml",
        "xl/worksheets/sheet1.xml": "spreadsheetml.worksheet+xml",
        "xl/tables/table1.xml": "spreadsheetml.table+xml",
    }
    texts = ('<sheets><sheet name="Sheet one"/></sheets>', strings, sheet, table)
    main = f'xmlns="{_SCHEMAS}/spreadsheetml/2006/main"'
    return office(types, {name: f"<x {main}>{text}</x>" for name, text in zip(types, texts, strict=True)})


def odf(kind: str, body: str, *, automatic_styles: str = "", styles: str = "", meta: str = "") -> bytes:
    """A document of OpenDocument; its kind is "text", "spreadsheet" or "presentation"."""
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f"<office:document-content {_ODF}><office:automatic-styles>{automatic_styles}"
            f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}></office:body>"
            "</office:document-content>",
            "styles.xml": f"<office:document-styles {_ODF}>{styles}</office:document-styles>",
            "meta.xml": f"<office:document-meta {_ODF}><office:meta>{meta}</office:meta></office:document-meta>",
            "META-INF/manifest.xml": "<manifest/>",
        }
    )


def epub(chapter: str, title: str = "A book") -> bytes:
    """A book with a chapter, and tables of contents of both versions."""
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    )
    book = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        f"<dc:title>{title}</dc:title><dc:creator>Ann Author</dc:creator><dc:language>en</dc:language></metadata>"
        '<manifest><item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
        '<item id="c" href="text/one%20two.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine toc="n"><itemref idref="c"/></spine></package>'
    )
    contents = (
        '<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">'
        "<ncx><docAuthor><text>Ann Author</text></docAuthor><navMap><navPoint><navLabel><text>Chapter one</text>"
        '</navLabel><content src="text/one%20two.xhtml"/></navPoint></navMap></ncx>'
    )
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "OEBPS/book.opf": book,
            "OEBPS/toc.ncx": contents,
            "OEBPS/text/one two.xhtml": '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml" lang="en" '
            f'xml:lang="en"><head><title>Chapter one</title></head><body>{chapter}</body></html>',
            "OEBPS/picture.png": b"\x89PNG\x00\xff",
        }
    )


CORE = (
    f"<cp:coreProperties {NAMESPACES}><dc:title>A report</dc:title><dc:creator>Ann Author</dc:creator>"
    "<cp:keywords>wind, water</cp:keywords></cp:coreProperties>"
)
