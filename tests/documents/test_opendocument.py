"""Texts of ODT, ODS, ODP and EPUB: which there are, and what becomes of spans, notes, spaces and cells."""

from __future__ import annotations

import io
import re
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_packages import epub, odf, translated, zipped
from transduce.documents import read_document
from transduce.documents.opendocument import _named
from transduce.errors import DataError
from transduce.text import word_spans

BOLD = '<style:style style:name="T1" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>'
# As LibreOffice writes at each change by another person, and for text of another language.
NOTHING = (
    '<style:style style:name="T2" style:family="text"><style:text-properties officeooo:rsid="001"/></style:style>'
    '<style:style style:name="T3" style:family="text"><style:text-properties fo:language="fr"/></style:style>'
)


def texts(data: bytes, name: str = "a.odt") -> list[str]:
    return [each.unit.text for each in read_document(data, name).segments]


def test_spans_that_look_alike_are_one() -> None:
    body = (
        "<text:p>The <text:span text:style-name='T2'>wi</text:span><text:span text:style-name='T3'>nd</text:span>\n"
        "  <text:span text:style-name='T1'>is <text:span text:style-name='T2'>loud</text:span></text:span>.</text:p>"
    )
    data = odf("text", body, automatic_styles=BOLD + NOTHING)
    assert texts(data) == ["The wind is loud."]
    result = translated(data, {"The wind is loud.": "Der Wind ist laut."}, "content.xml", name="a.odt")
    assert "<text:p>Der Wind <text:span text:style-name='T1'>ist laut</text:span>.</text:p>" in result


def test_links_notes_and_marks_are_tags() -> None:
    note = (
        '<text:note text:id="n"><text:note-citation>1</text:note-citation><text:note-body><text:p>A gale</text:p>'
        "</text:note-body></text:note>"
    )
    link = '<text:span text:style-name="T1"><text:a href="x">{}</text:a></text:span>'
    mark = '<text:bookmark text:name="b"/>'
    data = odf(
        "text",
        f"<text:h>The wind{note} {mark}sings {link.format('here')} <text:page-number>3</text:page-number></text:h>",
    )
    assert texts(data) == ["The wind sings here", "A gale"]
    result = translated(
        data, {"The wind sings here": "Der Wind singt hier", "A gale": "Ein Sturm"}, "content.xml", name="a.odt"
    )
    note = note.replace("A gale", "Ein Sturm")
    assert f"<text:h>Der Wind{note} {mark}singt {link.format('hier')} <text:page-number>3" in result


SPANS = ("<text:span text:style-name='T1'>{}</text:span>", "<text:span text:style-name='T2'>{}</text:span>")
AROUND = st.sampled_from([*SPANS, "<text:a>{}</text:a>"])
WORDS = ("wind ", "Rain", " ", "a&lt;b", ". ", "2", "<!-- -->")
ATOMS = ("s text:c='2'", "line-break", "tab", "bookmark", "soft-page-break", "page-number")
NOTE = "<text:note><text:p>A gale</text:p></text:note>"
LEAVES = st.sampled_from([*WORDS, *(f"<text:{each}/>" for each in ATOMS), NOTE])


@given(
    st.recursive(
        LEAVES,
        lambda inner: st.builds(lambda tag, parts: tag.format("".join(parts)), AROUND, st.lists(inner, max_size=4)),
        max_leaves=12,
    ),
    st.integers(0, 2**16),
)
def test_whatever_a_paragraph_has_stays(paragraph: str, seed: int) -> None:
    data = odf("text", f"<text:p>A{paragraph}z</text:p>", automatic_styles=BOLD + NOTHING)
    document, random = read_document(data, "a.odt"), np.random.default_rng(seed)
    assert document.written([None] * len(document.segments)) == data
    results = list[str]()
    for segment in document.segments:
        target = " ".join(random.choice(["Wort", "<x>", "1", "."], random.integers(0, 6)))
        words = word_spans(target)
        weights_XY = random.random((len(words), len(word_spans(segment.unit.text))), np.float32)
        results.append(segment.unit.put_back(target, words, weights_XY))
    written = document.written(results)
    before, after = (zipfile.ZipFile(io.BytesIO(each)).read("content.xml") for each in (data, written))
    kept = ("a", "line-break", "tab", "note", "bookmark", "page-number")
    counts = [[len(re.findall(rb"<\w+:%s\b" % name.encode(), each)) for name in kept] for each in (before, after)]
    assert counts[0] == counts[1]
    read_document(written, "a.odt")  # it is well-formed


def test_tabs_and_lines_part_texts_and_deleted_text_stays() -> None:
    body = (
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>Old text</text:p></text:deletion>"
        "</text:changed-region></text:tracked-changes>"
        "<text:p>Name:<text:tab/><text:span text:style-name='T1'>The wind,<text:line-break/>that sings"
        "<text:line-break/>Rest</text:span></text:p>"
    )
    data = odf("text", body, automatic_styles=BOLD)
    assert texts(data) == ["Name:", "The wind, that sings", "Rest"]
    result = translated(
        data, {"The wind, that sings": "Der Wind, der singt", "Name:": "Name :"}, "content.xml", name="a.odt"
    )
    span = "<text:span text:style-name='T1'>"
    assert f"<text:p>Name :<text:tab/>{span}Der Wind,</text:span>" in result
    assert f"{span}der singt</text:span>{span}<text:line-break/>Rest</text:span></text:p>" in result


def test_cells_with_formulas_and_numbers_stay() -> None:
    def cell(text: str, attributes: str) -> str:
        return f"<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>"

    body = (
        '<table:table table:name="Sheet one">'
        + cell("The wind", 'office:value-type="string"')
        + cell("computed", 'office:value-type="string" table:formula="of:=A1"')
        + cell("3 May", 'office:value-type="date"')
        + '<table:table-cell office:value-type="float"><office:annotation><text:p>A comment</text:p>'
        "</office:annotation><text:p>three</text:p></table:table-cell></table:table>"
    )
    assert texts(odf("spreadsheet", body), "a.ods") == ["The wind", "A comment"]


def test_a_cell_has_no_value_that_would_hide_its_translation() -> None:
    cell = "<table:table-cell office:value-type='string' office:string-value='{0} &amp;'><text:p>{0} &amp;</text:p>"
    body = "".join(cell.format(each) + "</table:table-cell>" for each in ("The wind", "12"))
    data = odf("spreadsheet", f"<table:table>{body}</table:table>")
    result = translated(data, {"The wind &": "Der Wind &"}, "content.xml", name="a.ods")
    assert "<table:table-cell office:value-type='string'><text:p>Der Wind &amp;</text:p>" in result
    assert cell.format("12") in result
    document = read_document(data, "a.ods")
    assert document.written([None] * len(document.segments)) == data


def test_how_words_are_read_stays_beside_them() -> None:
    ruby = "<text:ruby><text:ruby-base>{}</text:ruby-base><text:ruby-text>hai</text:ruby-text></text:ruby>"
    data = odf("text", f"<text:p>The {ruby.format('high')} wind</text:p>")
    assert texts(data) == ["The high wind"]
    result = translated(data, {"The high wind": "Der hohe Wind"}, "content.xml", name="a.odt")
    assert f"Der {ruby.format('hohe')} Wind" in result


def test_titles_headers_and_languages() -> None:
    styles = (
        '<style:default-style><style:text-properties fo:language="en" fo:country="US"/></style:default-style>'
        "<style:header><text:p>A header</text:p></style:header>"
        '<style:style><style:text-properties fo:language="zxx" fo:country="none"/></style:style>'
    )
    body = "<draw:frame><svg:title>A kite</svg:title><draw:text-box><text:p>A box</text:p></draw:text-box></draw:frame>"
    data = odf("presentation", body, styles=styles, meta="<dc:title>A talk</dc:title><dc:creator>Ann</dc:creator>")
    assert texts(data, "a.odp") == ["A kite", "A box", "A header", "A talk"]
    result = translated(data, {"A box": "Ein Kasten"}, "styles.xml", name="a.odp", tgt_language="de-AT")
    assert result.count('fo:language="de" fo:country="AT"') == 1
    assert 'fo:language="zxx" fo:country="none"' in result


def test_locked_documents_are_refused() -> None:
    members = {"mimetype": "x", "content.xml": b"\x00\x01", "META-INF/manifest.xml": "<manifest:encryption-data/>"}
    with pytest.raises(DataError, match="it is encrypted"):
        read_document(zipped(members), "a.odt")
    with pytest.raises(DataError, match=r"content\.xml: it is not well-formed XML"):
        read_document(zipped({"mimetype": "x", "content.xml": "<a>"}), "a.odt")
    with pytest.raises(DataError, match=r"it lacks content\.xml"):
        read_document(zipped({"mimetype": "x"}), "a.odt")


def test_a_book_has_chapters_contents_and_a_title() -> None:
    data = epub("<p>The <em>old</em>&#160;wind &amp; rain</p><pre><code>wind()</code></pre>")
    chapter = "OEBPS/text/one two.xhtml"
    assert texts(data, "a.epub") == ["A book", "Chapter one", "The old\u00a0wind & rain", "Chapter one"]
    places = [each.place.split(",")[0] for each in read_document(data, "a.epub").segments]
    assert places == ["OEBPS/book.opf", chapter, chapter, "OEBPS/toc.ncx"]
    targets = {"The old\u00a0wind & rain": "Der alte Wind & Regen"}
    result = translated(data, targets, chapter, name="a.epub", tgt_language="de")
    assert '<html xmlns="http://www.w3.org/1999/xhtml" lang="de" xml:lang="de">' in result
    assert "<p>Der <em>alte</em> Wind &amp; Regen</p><pre><code>wind()</code></pre>" in result
    assert "<dc:language>de<" in translated(data, targets, "OEBPS/book.opf", name="a.epub", tgt_language="de")


def test_books_without_a_list_or_with_a_lock_are_refused() -> None:
    with pytest.raises(DataError, match=r"META-INF/container\.xml"):
        read_document(zipped({"mimetype": "application/epub+zip"}), "a.epub")
    members = {each.filename: zipfile.ZipFile(io.BytesIO(epub(""))).read(each) for each in
               zipfile.ZipFile(io.BytesIO(epub(""))).infolist()}  # fmt: skip
    broken = {**members, "OEBPS/text/one two.xhtml": "no tags"}
    with pytest.raises(DataError, match=r"one two\.xhtml: it has no HTML tags"):
        read_document(zipped(broken), "a.epub")
    locked = '<encryption><CipherReference URI="OEBPS/text/one%20two.xhtml"/></encryption>'
    with pytest.raises(DataError, match=r"one two\.xhtml in it is encrypted"):
        read_document(zipped({**members, "META-INF/encryption.xml": locked}), "a.epub")


@pytest.mark.parametrize("name", ["OEBPS/text/one two.xhtml", "OEBPS/toc.ncx"])
def test_a_part_of_a_book_that_is_too_long_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = zipfile.ZipFile(io.BytesIO(epub("")))
    members = {each: archive.read(each) for each in archive.namelist()}
    monkeypatch.setattr("transduce.documents.package.MAX_TEXT_BYTES", 1000)
    assert read_document(zipped(members), "a.epub").segments
    with pytest.raises(DataError, match=rf"{name} in it has 1,\d\d\d bytes: too many"):
        read_document(zipped({**members, name: members[name] + b" " * 1000}), "a.epub")


def test_a_flat_document_may_have_other_prefixes() -> None:
    names = "urn:oasis:names:tc:opendocument:xmlns"
    root = f'<o:document\nxmlns:o="{names}:office:1.0" xmlns:t="{names}:text:1.0">'
    data = f"{root}<o:body><t:p>The wind</t:p></o:body></o:document>".encode()
    assert texts(data, "a.fodt") == ["The wind"]


def test_several_spaces_stay_several() -> None:
    data = odf("text", '<text:p><text:s text:c="4"/>The wind <text:s text:c="2"/>sings</text:p>')
    [text] = texts(data)
    assert text == "The wind   sings"
    result = translated(data, {text: "Der Wind   singt"}, "content.xml", name="a.odt")
    assert '<text:p><text:s text:c="4"/>Der Wind<text:s text:c="3"/>singt</text:p>' in result


def test_pages_of_a_language_from_right_to_left_begin_on_the_right() -> None:
    styles = (
        '<office:document-styles><style:text-properties fo:language="en" style:language-complex="hi"'
        ' style:country-complex="IN"/><style:page-layout-properties style:writing-mode="lr-tb"/>'
    )
    assert _named(styles, "fa") == styles.replace("hi", "fa").replace('"IN"', '"none"').replace("lr-tb", "rl-tb")
    assert _named(styles, "de") == styles.replace('"en"', '"de"')
