"""What each format of text has as texts, and how translations stand in it: cases written by hand."""

from __future__ import annotations

import pytest

from transduce.documents import Reading, format_of, read_document
from transduce.errors import DataError
from transduce.text.markup import Unit


def upper(unit: Unit) -> str:
    """Return the words of a text in capitals, with its tags where they were."""
    from transduce.imports import numpy as np
    from transduce.text import word_spans

    text, n_words = unit.text.upper(), len(word_spans(unit.text))
    return unit.put_back(text, word_spans(text), np.eye(n_words, dtype=np.float32))


def in_capitals(name: str, data: str, **reading: bool) -> str:
    """Return a document with its texts in capitals, as a German one."""
    document = read_document(data.encode(), name, Reading(**reading))
    return document.written([upper(each.unit) for each in document.segments], tgt_language="de").decode()


def texts(name: str, data: str) -> list[str]:
    """Return the texts of a document."""
    return [each.unit.text for each in read_document(data.encode(), name).segments]


def translated(name: str, data: str, *targets: str) -> str:
    """Return a document with translations of texts without tags."""
    document = read_document(data.encode(), name)
    placed = [each.unit.put_back(target) for each, target in zip(document.segments, targets, strict=True)]
    return document.written(placed).decode()


MARKDOWN = {
    "# A title #\n": "# A TITLE #\n",
    "A title\n===\n": "A TITLE\n===\n",
    "> one\n> *two*\nthree": "> ONE\n> *TWO*\n> THREE",
    "one  \n  two\\\nthree": "ONE  \n  TWO\\\nTHREE",
    "- a\n\n  b\n- [x] c": "- A\n\n  B\n- [x] C",
    "See [a link](<x y> 'Its title').": "SEE [A LINK](<x y> 'ITS TITLE').",
    "See [a link](x \"Its 'own' title\").": "SEE [A LINK](x \"ITS 'OWN' TITLE\").",
    "See [a link][ref].\n\n[ref]: x": "SEE [A LINK][ref].\n\n[ref]: x",
    "See [ref] and [ref][].\n\n[ref]: x": "SEE [REF][ref] AND [REF][ref].\n\n[ref]: x",
    "![a *b*](x.png) ![ref]\n\n[ref]: x": "![A *B*](x.png) ![REF][ref]\n\n[ref]: x",
    "[![a badge](x.svg)](y)": "[![A BADGE](x.svg)](y)",
    "The `code` and ``more ` code`` here": "THE `code` AND ``more ` code`` HERE",
    "<https://x.org> and a<br>b <kbd>Esc</kbd>": "<https://x.org> AND A<br>B <kbd>Esc</kbd>",
    'a <span title="b">c</span>': 'A <span title="B">C</span>',
    r"not \*marked\* and a &amp; b": r"NOT \*MARKED\* AND A & B",
    r"it is written \&amp; and \&lt;": r"IT IS WRITTEN \&AMP; AND \&LT;",
    "a | b\n--|--\n`x\\|y` z \\| w | v\n": "A | B\n--|--\n`x\\|y` Z \\| W | V\n",
    "> | a | b |\n> |---|---|\n> | | c |\n": "> | A | B |\n> |---|---|\n> | | C |\n",
    "~~struck~~ and ***both***": "~~STRUCK~~ AND ***BOTH***",
    "> [!NOTE]\n> take care[^1]\n\n[^1]: a note": "> [!NOTE]\n> TAKE CARE[^1]\n\n[^1]: A NOTE",
    "## a title {#x .y}": "## A TITLE {#x .y}",
    "with $x_1 + y$ in it, for $5 and $6": "WITH $x_1 + y$ IN IT, FOR \\$5 AND \\$6",
    "    code\n\n```python\n# code\n```\n\n~~~\ncode\n~~~": "    code\n\n```python\n# code\n```\n\n~~~\ncode\n~~~",
    "+++\ntitle = 'x'\n+++\n\ntext": "+++\ntitle = 'x'\n+++\n\nTEXT",
    "<div>\n<b>more</b>\n\n*text*\n\n</div>": "<div>\n<b>MORE</b>\n\n*TEXT*\n\n</div>",
    "<!-- a\ncomment -->\n\na\r\nb\r\n": "<!-- a\ncomment -->\n\nA\r\nB\r\n",
    "---\n\n***\n\n12\n": "---\n\n***\n\n12\n",
    ":::note Care\nMore text\nhere.\n:::\n": ":::note Care\nMORE TEXT\nHERE.\n:::\n",
    '!!! note "A title"\n    More text\n    here.\n': '!!! note "A TITLE"\n    MORE TEXT\n    HERE.\n',
    "??? tip\n    More\n\nText !!! note": "??? tip\n    MORE\n\nTEXT !!! NOTE",
    '=== "A tab"\n\ntext': '=== "A TAB"\n\nTEXT',
    "A word\n:   What it says\n:   More: of it": "A WORD\n:   WHAT IT SAYS\n:   MORE: OF IT",
}  # fmt: skip


@pytest.mark.parametrize("source", MARKDOWN)
def test_markdown(source: str) -> None:
    assert in_capitals("a.md", source) == MARKDOWN[source]


@pytest.mark.parametrize(
    ("target", "written"),
    [
        ("1. Mai", "1\\. Mai"),
        ("- nein", "\\- nein"),
        ("# eins", "\\# eins"),
        ("a * b", "a * b"),
        ("a*b*c", "a\\*b\\*c"),
        ("a_b_c", "a_b_c"),
        ("a _b c_ d", "a \\_b c\\_ d"),
        ("a __b__", "a \\_\\_b\\_\\_"),
        ("[ref] [x](y)", "\\[ref] [x\\](y)"),
        ("a <b> & &amp;", "a \\<b> & \\&amp;"),
        ("[x] ja [^1]", "\\[x] ja \\[^1]"),
        ("`x` \\*", "\\`x\\` \\\\\\*"),
    ],
)
def test_what_would_be_markdown_is_escaped(target: str, written: str) -> None:
    assert translated("a.md", "One\n\n[ref]: x\n", target) == f"{written}\n\n[ref]: x\n"


@pytest.mark.parametrize(
    ("target", "written"),
    [
        ("**„A“**b *c*", "<strong>„A“</strong>b *c*"),
        ("重*「要」*文 **a**", "重<em>「要」</em>文 **a**"),
        ("**a** *b* 5 * 3", "**a** *b* 5 * 3"),
        ("a_b_c **d**", "a_b_c **d**"),
        ("**„A“**b *c", "**„A“**b *c"),
    ],
)
def test_emphasis_that_would_be_none_is_html(target: str, written: str) -> None:
    assert read_document(b"**One** *two*", "a.md").written([target]).decode() == written


def test_a_paragraph_is_wrapped_as_it_was() -> None:
    source = "* > one line of words\n  > and another\n"
    target = "Eine Zeile mit Wörtern - und 1. [ein Link](x 'mit Titel'), `a b c d e f g h`"
    assert read_document(source.encode(), "a.md").written([target]).decode() == (
        "* > Eine Zeile mit\n  > Wörtern - und 1.\n  > [ein\n  > Link](x 'mit Titel'),\n  > `a b c d e f g h`\n"
    )


def test_a_line_is_no_front_matter() -> None:
    assert texts("a.md", "---\n\none\n\n---\n") == ["one"]


def test_pages() -> None:
    source = (
        "<!-- <html> --><html class=x><head><title>a title</title><meta name=description content='a page'>"
        '<meta name="viewport" content="width"><link title="no" href="x"></head><body>'
        '<input placeholder=name value="no"><input type="submit" value="go"><p>see '
        '<img src=x alt="the &quot;cat&quot;"> '
        '<a href="y" title="why">this</a> and <code title="no">code</code></p><script title="no">"no"</script>'
        '<p translate="no" title="no">no <b title="no">b</b></p><pre>no\nno</pre><div aria-label="shown"></div>'
    )
    assert in_capitals("a.html", source) == (
        "<!-- <html> --><html lang=\"de\" class=x><head><title>A TITLE</title><meta name=description content='A PAGE'>"
        '<meta name="viewport" content="width"><link title="no" href="x"></head><body>'
        '<input placeholder="NAME" value="no"><input type="submit" value="GO"><p>SEE '
        '<img src=x alt="THE &quot;CAT&quot;"> <a href="y" title="WHY">THIS</a> AND <code title="no">code</code></p>'
        '<script title="no">"no"</script><p translate="no" title="no">no <b title="no">b</b></p><pre>no\nno</pre>'
        '<div aria-label="SHOWN"></div>'
    )


@pytest.mark.parametrize(
    ("source", "written"),
    [
        (b'<meta charset="iso-8859-2"><p>\xb1', b'<meta charset="iso-8859-2"><p>\xb1 &#8222;&#21477;'),
        (b"<p>\x93\xe4", b"<p>\xe4 \x84&#21477;"),
        (b"\xef\xbb\xbf<p>\xc3\xa4", b"\xef\xbb\xbf<p>\xc3\xa4 \xe2\x80\x9e\xe5\x8f\xa5"),
    ],
)
def test_characters_that_an_encoding_lacks_become_entities(source: bytes, written: bytes) -> None:
    document = read_document(source, "a.html")
    text = document.segments[0].unit.text.lstrip("“")
    assert document.written([f"{text} „句"]) == written


def test_entities_of_xml_and_its_declarations_stay() -> None:
    source = (
        '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b "]>"><!-- ]> -->]>\n<a xml:lang="en">'
        "<t>one &b; two &#228; &lt;</t></a>"
    )
    assert in_capitals("a.xml", source) == (
        '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b "]>"><!-- ]> -->]>\n<a xml:lang="de">'
        "<t>ONE &b; TWO Ä &lt;</t></a>"
    )


XLIFF = '<xliff version="1.2"><file><trans-unit id="1"><source>One</source></trans-unit></file></xliff>'


@pytest.mark.parametrize("name", ["a.xml", "a.bak"])
@pytest.mark.parametrize(
    ("data", "words"),
    [
        ('<!DOCTYPE TS><TS version="2.1"><source>One</source></TS>', r"Qt translation file \(\.ts\)"),
        ("<!DOCTYPE TS>\n<TS><source>One</source></TS>", r"Qt translation file \(\.ts\)"),
        ('<tmx version="1.4"><seg>One</seg></tmx>', "TMX.* --tmx$"),
        ("<!-- x --><martif type='TBX'><term>One</term></martif>", "TBX.* --terms$"),
    ],
)
def test_texts_beside_their_translations_are_not_overwritten(data: str, words: str, name: str) -> None:
    for mark in ("", "\ufeff"):
        with pytest.raises(DataError, match=rf"^{name}: it is .*{words}"):
            read_document(f'{mark}<?xml version="1.0"?>\n{data}'.encode(), name)
        document = read_document(f'{mark}<?xml version="1.0"?>\n{XLIFF}'.encode(), name)
        assert b"<source>One</source><target" in document.written(["Eins"])


def test_the_headers_of_resources_stay() -> None:
    header = (
        "<resheader name='reader'><value>System.Resources.ResXResourceReader, System.Windows.Forms</value></resheader>"
    )
    data = f"<?xml version='1.0'?><root>{header}<data name='a' xml:space='preserve'><value>One</value></data></root>"
    assert texts("a.resx", data) == ["One"]


def test_xliff_is_recognised_by_its_root() -> None:
    declaration = b'<?xml version="1.0"?>'
    assert format_of("a.bak", XLIFF.encode()).name == format_of("a.bak", declaration + XLIFF.encode()).name == "xliff"
    assert format_of("a.bak", declaration + b"<resources><string><xliff:g>x</xliff:g></string>").name == "xml"


def test_strings_of_android() -> None:
    source = (
        '<resources><string name="a">don\\\'t <b>go</b>\\nto &lt;x&gt; %1$s <xliff:g id="x">%2$s</xliff:g></string>'
        '<string name="b" translatable="false">no</string><string name="c">@string/a</string>'
        '<plurals name="d"><item quantity="one">a file</item></plurals>'
        '<string-array name="e"><item>x</item><item>"y\\nz "</item></string-array>'
        '<string name="f"><![CDATA[it\\\'s <a href="x">here</a>]]></string></resources>'
    )
    document = read_document(source.encode(), "strings.xml")
    assert [each.context for each in document.segments] == ["a", "a", "d/one", "e/0", "e/1", "e/1", "f"]
    assert in_capitals("strings.xml", source, is_protected=True) == (
        '<resources><string name="a">DON\\\'T <b>GO</b>\\nTO &lt;X&gt; %1$s <xliff:g id="x">%2$s</xliff:g></string>'
        '<string name="b" translatable="false">no</string><string name="c">@string/a</string>'
        '<plurals name="d"><item quantity="one">A FILE</item></plurals>'
        '<string-array name="e"><item>X</item><item>"Y\\nZ "</item></string-array>'
        '<string name="f"><![CDATA[IT\\\'S <a href="x">HERE</a>]]></string></resources>'
    )


@pytest.mark.parametrize(
    ("raw", "written"),
    [
        (r"\u0020of \u0020", r"\u0020OF\u0020\u0020"), (r" Name:\u0020 ", r" NAME:\u0020 "), (r"x\ ", r"X\u0020"),
        (r"x\\ ", r"X\\ "), ('" of "', '" OF "'), ("\n  one\n", "\n  ONE\n"), (r"a \n b", r"A \n B"),
    ],
)  # fmt: skip
def test_space_at_the_ends_of_strings_of_android(raw: str, written: str) -> None:
    document = '<resources><string name="a">{}</string></resources>'
    assert in_capitals("strings.xml", document.format(raw)) == document.format(written)


@pytest.mark.parametrize(
    ("raw", "written"),
    [
        (r"line one\u003cbr>line two", "LINE ONE&lt;BR&gt;LINE TWO"),
        (r"hello\u0026nbsp;world", "HELLO&amp;NBSP;WORLD"),
        (r"\u003cb>a\u003c/b> it\'s", r"&lt;B&gt;A&lt;/B&gt; IT\'S"),
        (r"<![CDATA[a \u003cb>c\u003c/b>]]>", "<![CDATA[A <b>C</b>]]>"),
        (r"<![CDATA[a \u0026 c]]>", "<![CDATA[A & C]]>"),
    ],
)
def test_escaped_characters_of_android_are_no_markup(raw: str, written: str) -> None:
    document = '<resources><string name="a">{}</string></resources>'
    assert in_capitals("strings.xml", document.format(raw)) == document.format(written)
    assert texts("strings.xml", document.format(written))


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.html", '<p><img alt="Gr&ouml;&szlig;e"></p>', "Größe"),
        ("a.md", "Gr&ouml;&szlig;e", "Größe"),
        ("a.md", '[x](y "Gr&ouml;&szlig;e")', "Größe"),
        ("a.stringsdict", "<plist><dict><key>one</key><string>You &amp; I</string></dict></plist>", "You & I"),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nFish &amp; chips\n", "Fish & chips"),
    ],
)
def test_letters_that_are_written_as_entities_are_no_placeholders(name: str, data: str, text: str) -> None:
    first = read_document(data.encode(), name, Reading(is_protected=True)).segments[0].unit
    assert (first.text, first.nodes) == (text, ())


def test_numbers_of_json_stay_however_long_they_are() -> None:
    source = f'{{"a": "Text", "n": [{"1" * 5000}, 1.10, -0, NaN]}}'
    assert translated("a.json", source, "X") == source.replace("Text", "X")


def test_json_of_i18next_and_icu() -> None:
    source = """{"a": {"b": "{{n}} files in $t(c, {'x': 1})", "c": ["one", 2, {"d": "<0>two</0> &amp; https://x.org"}]},
      "icu": "it''s {n, plural, =0 {no} one {# file from {who}} other {{x, select, a {her} other {his}} files}}!",
      "@icu": {"description": "no"}, "@@locale": "en", "path": "no.txt", "raw": "{n, plural, one {cut"}"""
    document = read_document(source.encode(), "a.json", Reading(is_protected=True))
    contexts = ["a.b", "a.c.0", "a.c.2.d", *["icu"] * 6, "raw"]
    assert [each.context for each in document.segments] == contexts
    assert (
        in_capitals("a.json", source, is_protected=True)
        == """{"a": {"b": "{{n}} FILES IN $t(c, {'x': 1})", "c": ["ONE", 2, {"d": "<0>TWO</0> &amp; https://x.org"}]},
      "icu": "IT''S {n, plural, =0 {NO} one {# FILE FROM {who}} other {{x, select, a {HER} other {HIS}} FILES}}!",
      "@icu": {"description": "no"}, "@@locale": "de", "path": "no.txt", "raw": "{N, PLURAL, ONE {CUT"}"""
    )


def test_a_message_may_be_all_cases() -> None:
    message = "{n, plural, one {a file} other {files}}"
    assert texts("a.json", f'{{"a": "{message}"}}') == ["a file", "files"]
    assert texts("a.properties", f"a={message}") == ["a file", "files"]
    assert texts("a.strings", f'a = "{message}";') == ["a file", "files"]


def test_json_is_escaped_as_it_was() -> None:
    assert translated("a.json", '{"a": "\\u00e4h"}', 'ö "x"\\') == '{"a": "\\u00f6 \\"x\\"\\\\"}'
    assert translated("a.json", '{"a": "äh"}', "ö") == '{"a": "ö"}'
    extension = '{"a": {"message": "Text", "description": "No"}}'
    assert translated("messages.json", extension, "X") == '{"a": {"message": "X", "description": "No"}}'


def test_properties() -> None:
    source = (
        "# no\r\n! no\r\na = one\\\r\n   two\r\nb:c\\u00e4t\\n it''s {0}\r\nc d\r\n\r\nempty=\r\nurl = http://x.org\\"
    )
    document = read_document(source.encode(), "a.properties")
    assert [(each.context, each.unit.text) for each in document.segments] == [
        ("a", "onetwo"), ("b", "cät"), ("b", "it's {0}"), ("c", "d"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target", "written"),
    [
        (b"a=It''s {0}", "Das geht's\\ mit 😀", b"a=Das geht''s\\\\ mit \\ud83d\\ude00"),
        (b"a=Text", "\u00e4 's", b"a=\\u00e4 's"),
        ("a=Tüt".encode(), "ä", "a=ä".encode()),
        (b"a=T\xfct", "\u00e4", b"a=\\u00e4"),
    ],
)
def test_escapes_of_properties(source: bytes, target: str, written: bytes) -> None:
    document = read_document(source, "a.properties")
    assert document.written([document.segments[0].unit.put_back(target)]) == written


def test_strings_of_apple() -> None:
    source = '/* no */ "a \\"k\\"" = "say \\"yes\\"\\nnow \\U00e4";\n// no\nkey = "%@ files";\n'
    assert [each.context for each in read_document(source.encode(), "a.strings").segments] == ['a "k"', 'a "k"', "key"]
    assert in_capitals("a.strings", source, is_protected=True) == (
        '/* no */ "a \\"k\\"" = "SAY \\"YES\\"\\nNOW Ä";\n// no\nkey = "%@ FILES";\n'
    )
    with pytest.raises(DataError, match="line 2 is no entry"):
        read_document(b'"a" = "b";\nmore', "a.strings")


def test_lines_of_plural_forms_of_apple() -> None:
    source = "<plist><dict><key>one</key><string>One file.\n\n%d left &amp; now</string></dict></plist>"
    assert texts("a.stringsdict", source) == ["One file.", "%d left & now"]
    assert ">ONE FILE.\n\n%d LEFT &amp; NOW<" in in_capitals("a.stringsdict", source, is_protected=True)


def test_places_are_lines() -> None:
    source = '<p\n title="one\none">\n\n two <img\nalt="three"> four</p>\n<p>five</p>'
    places = {each.unit.text: each.place for each in read_document(source.encode(), "a.html").segments}
    assert places == {"one\none": "line 2", "three": "line 6", "two four": "line 5", "five": "line 7"}
    document = read_document(b'{\n"a": "one",\n"b": "two"}', "a.json")
    assert [each.place for each in document.segments] == ["line 2", "line 3"]


def test_pieces_of_code_that_come_to_stand_side_by_side_stay_two() -> None:
    document = read_document(b"Use `-y` or `--yes`.", "a.md")
    assert document.written(["Nimm `-y``--yes`."]) == b"Nimm `-y` `--yes`."
