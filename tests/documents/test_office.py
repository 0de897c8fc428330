"""Texts of DOCX, PPTX and XLSX: which there are, and what becomes of runs, links, notes, fields and breaks."""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_packages import NAMESPACES, OFFICE, docx, epub, odf, office, pptx, translated, xlsx, zipped
from transduce.documents import Reading, format_of, read_document
from transduce.errors import DataError
from transduce.text import word_spans

T = '<w:t xml:space="preserve">'
BOLD = "<w:rPr><w:b/></w:rPr>"


def texts(data: bytes, name: str = "a.docx", reading: Reading | None = None) -> list[str]:
    return [each.unit.text for each in read_document(data, name, reading).segments]


def body(data: bytes, targets: Mapping[str, str], **options: str) -> str:
    text = translated(data, targets, "word/document.xml", name="a.docx", **options)
    return text[text.index("<w:body>") + len("<w:body>") : text.index("</w:body>")]


def run(text: str, properties: str = "") -> str:
    return f"<w:r>{properties}{T}{text}</w:t></w:r>"


def test_runs_with_equal_properties_are_one() -> None:
    language = '<w:rPr><w:lang w:val="en-GB"/></w:rPr>'
    paragraph = (
        '<w:p w:rsidR="1"><w:pPr><w:jc/></w:pPr><w:r w:rsidR="2"><w:t>The wi</w:t></w:r>'
        f"<w:proofErr w:type='spellStart'/>{run('nd', language)}<w:proofErr/>{run(' sings.')}</w:p>"
    )
    data = docx(paragraph)
    assert texts(data)[0] == "The wind sings."
    expected = f'<w:p w:rsidR="1"><w:pPr><w:jc/></w:pPr><w:r>{T}Der Wind &lt;singt&gt;.</w:t></w:r></w:p>'
    assert body(data, {"The wind sings.": "Der Wind <singt>."}) == expected


def test_other_properties_are_a_tag_that_closes_the_run() -> None:
    data = docx(f"<w:p>{run('The ')}{run('old', BOLD)}{run(' wind')}</w:p>")
    assert body(data, {"The old wind": "Der alte Wind"}) == f"<w:p>{run('Der ')}{run('alte', BOLD)}{run(' Wind')}</w:p>"


def test_a_run_that_would_be_empty_is_left_out() -> None:
    data = docx(f"<w:p>{run('Old', BOLD)}{run(' wind sings')}</w:p>")
    assert body(data, {"Old wind sings": "Alter Wind singt"}) == f"<w:p>{run('Alter', BOLD)}{run(' Wind singt')}</w:p>"


def test_a_link_may_be_moved_with_its_words() -> None:
    link = '<w:hyperlink r:id="rId1">{}</w:hyperlink>'
    style = '<w:rPr><w:rStyle w:val="Hyperlink"/></w:rPr>'
    data = docx(f"<w:p>{run('See ')}{link.format(run('this page', style))}{run(' now.')}</w:p>")
    expected = f"<w:p>{run('Siehe ')}{link.format(run('diese Seite', style))}{run(' jetzt.')}</w:p>"
    assert body(data, {"See this page now.": "Siehe diese Seite jetzt."}) == expected


def test_a_link_around_all_text_is_no_tag() -> None:
    data = docx(f'<w:p><w:hyperlink w:anchor="x">{run("This page")}</w:hyperlink></w:p>')
    assert read_document(data, "a.docx").segments[0].unit.nodes == ()
    assert body(data, {"This page": "Diese Seite"}) == data_body(data).replace("This page", "Diese Seite")


def data_body(data: bytes) -> str:
    return body(data, {})


@pytest.mark.parametrize("is_simple", [True, False])
def test_fields_stay_and_links_among_them_are_translated(is_simple: bool) -> None:
    def field(instruction: str, result: str) -> str:
        if is_simple:
            return f'<w:fldSimple w:instr=" {instruction} ">{result}</w:fldSimple>'
        begin, middle, end = (
            f'<w:r><w:fldChar w:fldCharType="{each}"/></w:r>' for each in ("begin", "separate", "end")
        )
        return f"{begin}<w:r><w:instrText> {instruction} </w:instrText></w:r>{middle}{result}{end}"

    page, link = field("PAGE", run("7")), field("HYPERLINK x", "{}")
    data = docx(f"<w:p>{run('On ')}{page}{run(' see ')}{link.format(run('this'))}{run(' too')}</w:p>")
    assert texts(data)[0] == "On see this too"
    expected = f"<w:p>{run('Auf ')}{page}{run(' siehe ')}{link.format(run('dies'))}{run(' auch')}</w:p>"
    assert body(data, {"On see this too": "Auf siehe dies auch"}) == expected


def test_the_mark_of_a_note_stays_at_its_word() -> None:
    note = '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:footnoteReference w:id="2"/></w:r>'
    footnote = f"<w:footnote><w:p><w:r><w:footnoteRef/></w:r>{run(' A gale.')}</w:p></w:footnote>"
    data = docx(f"<w:p>{run('The wind')}{note}{run(' sings.')}</w:p>", footnotes=footnote)
    assert texts(data) == ["The wind sings.", "A gale.", "A report", "wind, water"]
    assert body(data, {"The wind sings.": "Der Wind singt."}) == f"<w:p>{run('Der Wind')}{note}{run(' singt.')}</w:p>"
    notes = translated(data, {"A gale.": "Ein Sturm."}, "word/footnotes.xml", name="a.docx")
    assert footnote.replace("A gale.", "Ein Sturm.") in notes


def test_low_figures_are_text_and_high_ones_belong_to_their_word() -> None:
    low, high = (f'<w:rPr><w:vertAlign w:val="{each}script"/></w:rPr>' for each in ("sub", "super"))
    data = docx(f"<w:p>{run('All H')}{run('2', low)}{run('O is wet')}{run('3', high)}{run('.')}</w:p>")
    assert texts(data)[0] == "All H2O is wet."
    result = body(data, {"All H2O is wet.": "Alles H2O ist nass."})
    assert result.endswith(f"{run(' ist nass')}{run('3', high)}{run('.')}</w:p>")


def test_tabs_and_page_breaks_part_texts_and_lines_inside_a_clause_do_not() -> None:
    contents = (
        f"<w:r>{BOLD}<w:t>Name:</w:t><w:tab/><w:t>The wind</w:t><w:br/><w:t>that sings.</w:t><w:br/>"
        '<w:t>It rests.</w:t><w:br w:type="page"/></w:r>'
    )
    data = docx(f"<w:p>{contents}</w:p>")
    assert texts(data)[:3] == ["Name:", "The wind that sings.", "It rests."]
    opened = f"<w:r>{BOLD}"
    expected = (
        f"<w:p>{opened}<w:t>Name:</w:t><w:tab/></w:r>{run('Der Wind', BOLD)}{opened}<w:br/></w:r>"
        f'{run("der singt.", BOLD)}{opened}<w:br/><w:t>It rests.</w:t><w:br w:type="page"/></w:r></w:p>'
    )
    assert body(data, {"The wind that sings.": "Der Wind der singt."}) == expected
    others = body(data, {"Name:": "Name :", "It rests.": "Er ruht."})
    assert re.findall("<w:t(?: .*?)?>(.*?)</w:t>", others) == ["Name :", "The wind", "that sings.", "Er ruht."]
    assert re.findall("<w:(?:tab|br)[^>]*>", others) == ["<w:tab/>", "<w:br/>", "<w:br/>", '<w:br w:type="page"/>']


def test_insertions_are_translated_and_deletions_stay() -> None:
    deleted = "<w:del w:id='1'><w:r><w:delText>rain</w:delText></w:r></w:del>"
    data = docx(f"<w:p>{run('The ')}{deleted}<w:ins w:id='2'>{run('wind')}</w:ins>{run(' sings')}</w:p>")
    assert texts(data)[0] == "The wind sings"
    result = body(data, {"The wind sings": "Der Wind singt"})
    assert result == f"<w:p>{run('Der ')}{deleted}<w:ins w:id='2'>{run('Wind')}</w:ins>{run(' singt')}</w:p>"


def test_paragraphs_in_text_boxes_are_texts_of_their_own() -> None:
    box = (
        '<w:r><w:drawing><wp:anchor><wp:docPr id="1" name="P 1" descr="A &quot;kite&quot;"/><w:txbxContent>'
        f"<w:p>{run('A box')}</w:p></w:txbxContent></wp:anchor></w:drawing></w:r>"
    )
    data = docx(f"<w:p>{run('Before ')}{box}{run('after')}</w:p>")
    assert texts(data)[:3] == ["Before after", 'A "kite"', "A box"]
    result = body(data, {"Before after": "Davor danach", "A box": "Ein Kasten", 'A "kite"': 'Ein "Drachen"'})
    assert "Ein Kasten" in result
    assert 'descr="Ein &quot;Drachen&quot;"' in result
    assert [result.count(each) for each in ("<w:drawing>", "Davor ", "danach")] == [1, 1, 1]
    alone = body(data, {"A box": "Ein Kasten"})
    assert alone == data_body(data).replace("A box", "Ein Kasten")


def test_a_comment_may_look_like_a_mark() -> None:
    comments = "".join(f"<!-- <?{number}-{place}?> -->" for number in range(3) for place in range(0, 900, 7))
    data = docx(f"{comments}<w:p>{run('The')}{comments}{run(' wind')}</w:p>")
    assert body(data, {"The wind": "Der Wind"}) == f"{comments}<w:p>{run('Der Wind')}</w:p>"


def test_forms_with_choices_stay() -> None:
    choice = f"<w:sdt><w:sdtPr><w:dropDownList/></w:sdtPr><w:sdtContent>{run('red')}</w:sdtContent></w:sdt>"
    text = f"<w:sdt><w:sdtPr/><w:sdtContent>{run('wind')}</w:sdtContent></w:sdt>"
    data = docx(f"<w:p>{run('A ')}{choice}{run(' and ')}{text}</w:p>")
    assert texts(data)[0] == "A and wind"
    result = body(data, {"A and wind": "Ein und Wind"})
    assert result == data_body(data).replace(">A ", ">Ein ").replace("and", "und").replace("wind", "Wind")


def test_how_words_are_read_stays_beside_them() -> None:
    ruby = f"<w:r><w:ruby><w:rt>{run('hai')}</w:rt><w:rubyBase>{{}}</w:rubyBase></w:ruby></w:r>"
    data = docx(f"<w:p>{run('The ')}{ruby.format(run('high'))}{run(' wind')}</w:p>")
    assert texts(data)[0] == "The high wind"
    assert ruby.format(run("hohe")).replace(T, "<w:t>") in body(data, {"The high wind": "Der hohe Wind"}).replace(
        T, "<w:t>"
    )


def test_bookmarks_show_nothing_and_stay() -> None:
    data = docx(f"<w:p>{run('wi')}<w:bookmarkStart w:id='0'/>{run('nd sings')}<w:bookmarkEnd w:id='0'/></w:p>")
    assert texts(data)[0] == "wind sings"
    assert body(data, {"wind sings": "Wind singt"}).count("<w:bookmark") == 2


def test_the_language_is_that_of_the_translation() -> None:
    english = '<w:rPr><w:lang w:val="en-US" w:eastAsia="ja-JP"/></w:rPr>'
    data = docx(f"<w:p>{run('The wind', english)}</w:p><w:p>{run('The rain', english)}</w:p>", styles=english)
    result = body(data, {"The wind": "Der Wind"}, tgt_language="de-AT")
    assert re.findall('w:val="(.*?)"', result) == ["de-AT", "en-US"]
    styles = translated(data, {"The wind": "Der Wind"}, "word/styles.xml", name="a.docx", tgt_language="de-AT")
    assert 'w:val="de-AT" w:eastAsia="ja-JP"' in styles
    assert read_document(data, "a.docx").written([None] * 4, tgt_language="de") == data


def test_any_prefix_will_do() -> None:
    main = "http://purl.oclc.org/ooxml/wordprocessingml/main"
    document = f'<x:document xmlns:x="{main}"><x:p><x:r><x:t>The wind</x:t></x:r></x:p></x:document>'
    data = office({"d.xml": "wordprocessingml.document.main+xml"}, {"d.xml": document})
    result = translated(data, {"The wind": "Der Wind"}, "d.xml", name="a.docx")
    assert '<x:p><x:r><x:t xml:space="preserve">Der Wind</x:t></x:r></x:p>' in result


@pytest.mark.parametrize(
    ("declared", "encoding"), [("UTF-8", "utf-8-sig"), ("UTF-16", "utf-16"), ("ISO-8859-1", "latin-1")]
)
def test_parts_keep_their_encoding(declared: str, encoding: str) -> None:
    text = docx_text(docx(f"<w:p>{run('Größe')}</w:p><w:p>{run('The wind')}</w:p>"))
    part = f'<?xml version="1.0" encoding="{declared}"?>{text}'.encode(encoding)
    data = office({"d.xml": "wordprocessingml.document.main+xml"}, {"d.xml": part})
    document = read_document(data, "a.docx")
    assert [each.unit.text for each in document.segments] == ["Größe", "The wind"]
    written = zipfile.ZipFile(io.BytesIO(document.written([None, run("Die Bö 東")]))).read("d.xml")
    lacks = encoding == "latin-1"
    assert written == part.decode(encoding).replace("The wind", f"Die Bö {'&#26481;' if lacks else '東'}").encode(
        encoding
    )


def docx_text(data: bytes) -> str:
    return zipfile.ZipFile(io.BytesIO(data)).read("word/document.xml").decode()


def test_addresses_are_tags_on_request() -> None:
    data = docx(f"<w:p>{run('See https://x.org/?a=1&amp;b now')}</w:p>")
    document = read_document(data, "a.docx", Reading(is_protected=True))
    unit = document.segments[0].unit
    assert unit.text == "See now"
    result = unit.put_back("Siehe jetzt", word_spans("Siehe jetzt"), np.eye(2, dtype=np.float32))
    assert result == run("Siehe https://x.org/?a=1&amp;b jetzt")


def test_a_slide_has_runs_line_ends_fields_and_notes() -> None:
    properties = '<a:rPr lang="en-US" dirty="0"/>'
    title = (
        f"<a:p><a:r>{properties}<a:t>How to build</a:t></a:r><a:br/><a:r><a:rPr lang='fr-FR'/><a:t>a kite</a:t></a:r>"
        '<a:fld id="1" type="slidenum"><a:t>3</a:t></a:fld><a:endParaRPr/></a:p>'
    )
    described = '<p:cNvPr id="2" name="P" descr="A kite"/>'
    data = pptx(title + described, f"<a:p><a:r>{properties}<a:t>Speak up</a:t></a:r></a:p>")
    assert texts(data, "a.pptx") == ["How to build a kite", "A kite", "Speak up"]
    slide = "ppt/slides/slide1.xml"
    result = translated(
        data, {"How to build a kite": "Wie man baut ein Drachen"}, slide, name="a.pptx", tgt_language="de"
    )
    german = properties.replace("en-US", "de")
    expected = (
        f"<a:p><a:r>{german}<a:t>Wie man baut</a:t></a:r><a:br/><a:r>{german}<a:t>ein Drachen</a:t></a:r>"
        '<a:fld id="1" type="slidenum"><a:t>3</a:t></a:fld><a:endParaRPr/></a:p>'
    )
    assert expected in result
    main = translated(data, {"Speak up": "Lauter"}, "ppt/presentation.xml", name="a.pptx", tgt_language="de")
    assert '<a:defRPr lang="de"/>' in main


def test_of_a_master_slide_texts_that_show_are_translated() -> None:
    def shape(text: str, kind: str) -> str:
        return f"<p:sp><p:nvPr>{kind}</p:nvPr><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sp>"

    master = f"<p:x {NAMESPACES}>{shape('Click to edit', '<p:ph/>')}{shape('Our wind', '')}</p:x>"
    types = {"p.xml": "presentationml.presentation.main+xml", "m.xml": "presentationml.slideMaster+xml"}
    assert texts(office(types, {"p.xml": "<p/>", "m.xml": master}), "a.pptx") == ["Our wind"]


def test_a_chart_has_a_title_and_names() -> None:
    chart = (
        f"<c:x {NAMESPACES}><c:tx><c:rich><a:p><a:r><a:t>Wind by month</a:t></a:r></a:p></c:rich></c:tx>"
        "<c:strCache><c:pt><c:v>May</c:v></c:pt></c:strCache><c:numCache><c:pt><c:v>General</c:v></c:pt></c:numCache></c:x>"
    )
    types = {"w.xml": "wordprocessingml.document.main+xml", "c.xml": "drawingml.chart+xml"}
    assert texts(office(types, {"w.xml": "<w/>", "c.xml": chart})) == ["Wind by month", "May"]


def test_cells_have_plain_text_lines_and_runs() -> None:
    strings = (
        '<si><t xml:space="preserve"> The wind&#10;sings loud.\nIt rests. </t></si>'
        "<si><t>42 km</t></si><si><r><t>Some </t></r><r><rPr><b/></rPr><t>wind</t></r><rPh><t>yomi</t></rPh></si>"
    )
    cell = '<c t="inlineStr"><is><t>In line</t></is></c><c t="str"><f>"A"&amp;B1</f><v>Computed</v></c>'
    data = xlsx(strings, cell)
    assert texts(data, "a.xlsx") == ["The wind sings loud.", "It rests.", "Some wind", "In line"]
    targets = {"The wind sings loud.": "Der Wind singt laut.", "Some wind": "Eine Boe", "It rests.": "Er ruht."}
    result = translated(data, targets, "xl/sharedStrings.xml", name="a.xlsx")
    assert '<si><t xml:space="preserve"> Der Wind&#10;singt laut.\nEr ruht. </t></si>' in result
    expected = '<si><r><t xml:space="preserve">Eine </t></r><r><rPr><b/></rPr><t xml:space="preserve">Boe</t></r><rPh>'
    assert expected in result


COLUMNS = '<tableColumn id="1" name="Wind"/><tableColumn id="2" name="Rain"/><tableColumn id="3" name="A &quot;b"/>'
CELLS = '<si><t>Wind</t></si><si><t>Rain</t></si><si><t>A "b</t></si>'


@pytest.mark.parametrize(
    ("targets", "columns"),
    [
        ({"Wind": "Luft", 'A "b': 'Ein "b'}, ["Luft", "Rain", "Ein &quot;b"]),
        ({"Wind": "Wetter", "Rain": "wetter"}, ["Wind", "Rain", "A &quot;b"]),
        ({"Wind": "Rain", "Rain": "Regen"}, ["Rain", "Regen", "A &quot;b"]),
        ({"Wind": "Rain"}, ["Wind", "Rain", "A &quot;b"]),
    ],
)
def test_columns_of_tables_are_named_as_their_cells(targets: Mapping[str, str], columns: list[str]) -> None:
    data = xlsx(CELLS, table=COLUMNS)
    table = translated(data, targets, "xl/tables/table1.xml", name="a.xlsx")
    assert re.findall('name="(.*?)"', table) == columns
    cells = translated(data, targets, "xl/sharedStrings.xml", name="a.xlsx")
    assert re.findall("<t>(.*?)</t>", cells) == [each.replace("&quot;", '"') for each in columns]


@pytest.mark.parametrize(
    ("strings", "sheet", "name"),
    [
        ("<si><t>Wind</t></si>", "<f>SUM(Table1[Wind])</f>", "Wind"),
        ("<si><t>Wind</t></si>", "<f>Table1[[#This Row],[Wind]]</f>", "Wind"),
        ("<si><t>Wind &amp; rain</t></si>", "<f>Table1[@Wind &amp; rain]</f>", "Wind &amp; rain"),
        ("<si><t>Wind #</t></si>", "", "Wind #"),
        ("<si><t>Wind\nspeed</t></si>", "", "Wind_x000a_speed"),
    ],
)
def test_names_of_columns_that_formulas_know_stay(strings: str, sheet: str, name: str) -> None:
    table = f'<tableColumn id="1" name="{name}"/>'
    assert texts(xlsx(f"{strings}<si><t>A gale</t></si>", sheet, table), "a.xlsx") == ["A gale"]


def test_the_end_of_another_name_is_not_the_name_of_a_column() -> None:
    data = xlsx("<si><t>Wind</t></si>", "<f>Table1[East Wind]</f>", '<tableColumn id="1" name="Wind"/>')
    assert texts(data, "a.xlsx") == ["Wind"]


def test_a_table_that_is_too_long_is_refused_and_a_long_sheet_without_text_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("transduce.documents.package.MAX_TEXT_BYTES", 1000)
    numbers = "<c><v>1</v></c>" * 100
    assert texts(xlsx("<si><t>Wind</t></si>", numbers, COLUMNS), "a.xlsx") == ["Wind"]
    with pytest.raises(DataError, match=r"xl/tables/table1\.xml in it has \d,\d\d\d bytes: too many"):
        texts(xlsx("<si><t>Wind</t></si>", numbers, COLUMNS * 10), "a.xlsx")


def test_names_that_stay_are_not_those_of_charts() -> None:
    chart = f"<c:x {NAMESPACES}><c:strCache><c:pt><c:v>Wind</c:v></c:pt></c:strCache></c:x>"
    members = zipfile.ZipFile(io.BytesIO(xlsx("<si><t>Wind</t></si>", "<f>SUM(Table1[Wind])</f>", COLUMNS)))
    parts = {each: members.read(each).decode() for each in members.namelist()} | {"c.xml": chart}
    kind = f'<Override PartName="/c.xml" ContentType="{OFFICE}.drawingml.chart+xml"/></Types>'
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace("</Types>", kind)
    assert texts(zipped(parts), "a.xlsx") == ["Wind"]
    table = translated(zipped(parts), {"Wind": "Luft"}, "xl/tables/table1.xml", name="a.xlsx")
    assert re.findall('name="(.*?)"', table)[0] == "Wind"
    assert translated(zipped(parts), {"Wind": "Luft"}, "c.xml", name="a.xlsx") == chart


def test_headers_of_sheets_have_codes() -> None:
    codes = '&amp;L&amp;"Arial,Bold"&amp;12Wind &amp;&amp; rain&amp;CPage &amp;P of &amp;N'
    header = f"<headerFooter><oddHeader>{codes}</oddHeader></headerFooter>"
    data = xlsx("", header)
    assert texts(data, "a.xlsx") == ["Wind && rain", "Page of"]
    result = translated(data, {"Page of": "Seite von"}, "xl/worksheets/sheet1.xml", name="a.xlsx")
    assert header.replace("Page", "Seite").replace("of", "von") in result


def test_headers_of_sheets_may_have_a_prefix() -> None:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    header = f'<h:headerFooter xmlns:h="{main}"><h:oddHeader>Wind</h:oddHeader></h:headerFooter>'
    assert texts(xlsx("", header), "a.xlsx") == ["Wind"]


def test_formats_are_recognised_by_their_content() -> None:
    samples = {"docx": docx(""), "pptx": pptx(""), "xlsx": xlsx(""), "odt": odf("text", ""), "epub": epub("")}
    assert {name: format_of("-", data).name for name, data in samples.items()} == {name: name for name in samples}


def test_a_document_of_another_format_is_refused() -> None:
    with pytest.raises(DataError, match=r"a\.pptx: it has no part of the type presentationml"):
        read_document(docx(""), "a.pptx")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<w:p>", r"word/document\.xml: it is not well-formed"),
        ("<w:p>" * 1_000 + "</w:p>" * 1_000, "more than 250 elements in each other"),
    ],
)
def test_damaged_parts_are_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_document(docx(text), "a.docx")


def test_parts_in_each_other_are_read_as_deep_as_allowed() -> None:
    depth = 245
    data = docx(f"<w:p>{'<w:ins>' * depth}{run('The wind')}{'</w:ins>' * depth}{run(' sings')}</w:p>")
    assert body(data, {"The wind sings": "Der Wind singt"}).count("<w:ins>") == depth


STYLES = ("", BOLD, "<w:rPr><w:i/></w:rPr>", '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>')
ATOMS = ("<w:br/>", "<w:tab/>", '<w:footnoteReference w:id="1"/>', "<w:drawing/>", f"{T} </w:t>")
WORDS = ("wind ", "Rain", " ", "a&lt;b", "x. ", "c &amp; d", "")
RUNS = st.builds(
    lambda style, contents: f"<w:r>{style}{''.join(contents)}</w:r>",
    st.sampled_from(STYLES),
    st.lists(st.sampled_from([*ATOMS, *(f"{T}{word}</w:t>" for word in WORDS)]), max_size=4),
)
MARKS = ("<w:bookmarkStart w:id='1'/>", "<w:proofErr/>", "<w:del><w:r/></w:del>", "<m xmlns='x'/>")
PARAGRAPHS = st.lists(
    st.recursive(
        st.one_of(RUNS, st.sampled_from(MARKS)),
        lambda inner: st.lists(inner, max_size=4).map(lambda parts: f"<w:hyperlink>{''.join(parts)}</w:hyperlink>"),
        max_leaves=8,
    ),
    max_size=6,
)


@given(PARAGRAPHS, st.integers(0, 2**16))
def test_whatever_a_paragraph_has_stays_and_its_text_is_the_translation(parts: list[str], seed: int) -> None:
    data = docx(f"<w:p>{''.join(parts)}</w:p>")
    document, random = read_document(data, "a.docx"), np.random.default_rng(seed)
    assert document.written([None] * len(document.segments)) == data
    results, expected = list[str](), list[str]()
    for segment in document.segments:
        n_words = int(random.integers(0, 6))
        target = " ".join(random.choice(["Wort", "<x>", "1", "."], n_words))
        words = word_spans(target)
        weights_XY = random.random((len(words), len(word_spans(segment.unit.text))), np.float32)
        results.append(segment.unit.put_back(target, words, weights_XY))
        expected.append(target)
    written = document.written(results)
    before, after = (zipfile.ZipFile(io.BytesIO(each)).read("word/document.xml") for each in (data, written))
    kept = ("hyperlink", "br", "tab", "footnoteReference", "drawing", "bookmarkStart", "del", "m")
    counts = [[len(re.findall(rb"<(?:w:)?%s\b" % name.encode(), each)) for name in kept] for each in (before, after)]
    assert counts[0] == counts[1]
    read_document(written, "a.docx")  # it is well-formed
    text = "".join(re.findall("<w:t(?: [^>]*)?>(.*?)</w:t>", after.decode()))
    for target in expected[: -len(texts(docx("")))]:
        assert "".join(map(html.escape, target.split())) in "".join(text.split())


def test_entities_of_its_own_are_refused() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
    with pytest.raises(DataError, match="document type"):
        read_document(office({"d.xml": "wordprocessingml.document.main+xml"}, {"d.xml": bomb}), "a.docx")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<a:pPr lvl="1" algn="l" rtl="0"/>', '<a:pPr lvl="1" algn="r" rtl="1"/>'),
        ('<a:pPr algn="ctr"><a:buNone/></a:pPr>', '<a:pPr algn="ctr" rtl="1"><a:buNone/></a:pPr>'),
        ("", ""),
    ],
)
def test_slides_of_a_language_from_right_to_left(before: str, after: str) -> None:
    data = pptx(f"<a:p>{before}<a:r><a:t>One</a:t></a:r></a:p>")

    def slide(language: str) -> str:
        return translated(data, {"One": "X"}, "ppt/slides/slide1.xml", name="a.pptx", tgt_language=language)

    assert f"<a:p>{after}<a:r>" in slide("ar")
    assert f"<a:p>{before}<a:r>" in slide("de")


def test_defaults_of_slides_turn_as_well() -> None:
    master = '<p:titleStyle><a:lvl1pPr rtl="0"><a:buNone/></a:lvl1pPr><a:lvl2pPr algn="l"/></p:titleStyle>'
    types = {
        "p.xml": "presentationml.presentation.main+xml", "m.xml": "presentationml.slideMaster+xml",
        "s.xml": "presentationml.slide+xml",
    }  # fmt: skip
    parts = {"m.xml": master, "s.xml": "<a:p><a:r><a:t>One</a:t></a:r></a:p>"}
    wrapped = {name: f"<x {NAMESPACES}>{content}</x>" for name, content in parts.items()}
    data = office(types, {"p.xml": "<p/>", **wrapped})
    turned = translated(data, {"One": "X"}, "m.xml", name="a.pptx", tgt_language="he")
    assert '<a:lvl1pPr rtl="1" algn="r"><a:buNone/></a:lvl1pPr><a:lvl2pPr algn="r" rtl="1"/>' in turned


@pytest.mark.parametrize(
    ("default", "turned"),
    [
        ("<w:pPrDefault/>", "<w:pPrDefault><w:pPr><w:bidi/></w:pPr></w:pPrDefault>"),
        (
            '<w:pPrDefault><w:pPr><w:keepNext/><w:spacing w:after="1"/></w:pPr></w:pPrDefault>',
            '<w:pPrDefault><w:pPr><w:keepNext/><w:bidi/><w:spacing w:after="1"/></w:pPr></w:pPrDefault>',
        ),
        (
            "<w:pPrDefault><w:pPr><w:bidi/></w:pPr></w:pPrDefault>",
            "<w:pPrDefault><w:pPr><w:bidi/></w:pPr></w:pPrDefault>",
        ),
    ],
)
def test_paragraphs_of_a_language_from_right_to_left_begin_on_the_right(default: str, turned: str) -> None:
    languages = '<w:rPrDefault><w:rPr><w:lang w:val="en-US" w:bidi="he-IL"/></w:rPr></w:rPrDefault>'
    data = docx("<w:p><w:r><w:t>One</w:t></w:r></w:p>", styles=languages + default)

    def styles(language: str) -> str:
        written = translated(data, {"One": "X"}, "word/styles.xml", name="a.docx", tgt_language=language)
        return re.sub("</?w:x[^>]*>", "", written)

    assert styles("ar") == languages.replace("he-IL", "ar") + turned
    assert styles("de") == languages.replace("en-US", "de") + default
