"""What every document format keeps: the same bytes without translations, every text, every tag."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest

from random_models import stored_model
from small_packages import docx, epub, odf, pptx, xlsx
from transduce.config import GreedySearchConfig, TransformerConfig
from transduce.documents import Reading, read_document
from transduce.errors import DataError
from transduce.inference import DocumentTranslation, Translator
from transduce.inference.translation.document_files import translate_document
from transduce.inference.translation.remembered import known
from transduce.memories import Match, Memory, write_memory
from transduce.terms import Terms
from transduce.text import Tokenizers, byte_tokenizer
from transduce.text.markup import Unit
from transduce.text.pieces import Tag

SAMPLES: dict[str, bytes] = {  # small documents of each format, by file name
    "lines.txt": "\ufeffOne line.\r\n\r\nTwo\tcolumns \n".encode(),
    "program.po": b"""# A program
msgid ""
msgstr ""
"Language: de\\n"
"Content-Type: text/plain; charset=ISO-8859-1\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

#. to the user
#: main.c:1
#, c-format
msgid "One file\\n"
msgid_plural "Some files\\n"
msgstr[0] "Eine Datei\\n"
msgstr[1] ""

#, fuzzy
#| msgid "Open"
msgctxt "menu"
msgid "Close"
msgstr "\xd6ffnen"

#~ msgid "Old"
#~ msgstr "Alt"
""",
    "pairs.xlf": b"""<?xml version="1.0" encoding="ISO-8859-1"?>
<xliff version="1.2"><file source-language="en" target-language="de"><body>
<trans-unit id="1"><source>A <g id="1">red</g> door &amp; more</source><note>n</note></trans-unit>
<trans-unit id="2"><source>Hello</source><target state="new">Hello</target>
<alt-trans><source>x y</source><target>Gr\xfc\xdfe</target></alt-trans></trans-unit>
</body></file></xliff>
""",
    "pairs.xliff": b"""<xliff version="2.1" srcLang="en" trgLang="de"><file id="f"><unit id="1">
<segment state="final"><source>It is <pc id="1">here</pc>.</source>
<target>Es ist <pc id="1">hier</pc>.</target></segment></unit></file></xliff>
""",
    "template.pot": b'msgid ""\r\nmsgstr "Language: \\n"\r\n\r\nmsgid ""\r\n"Usage: "\r\n"x\\n"\r\nmsgstr ""\r\n',
    "wide.txt": "\ufeffOne line.\n".encode("utf-16-le"),
    "page.html": b"""<!DOCTYPE html>\r\n<html lang=en><title>A page</title><body><p class="a">One
<b>bold</b> word&nbsp;here
        <img alt=Picture title='Its "title"' src=x.png></p><pre>code</pre><p translate=no>No</p></html>""",
    "old.htm": '<meta charset="iso-8859-1"><p>Größe &amp; Ähnliches</p>'.encode("latin-1"),
    "guide.md": b"""---\ntitle: Stays\n---\n# A heading\n\n> Wrapped in a\n> quotation, with *two*
> [links](x.html "A title"), [one] and ![a picture](y.png)  \n> and a break\n\n- [ ] `code` and text

| a | **b** |\n|---|---|\n| c \\| d | e |

```\ncode\n```\n\n<div title="Shown">In <i>HTML</i></div>\n\n[one]: http://x.org "Stays"\n""",
    "book.xml": """<?xml version="1.0" encoding="ISO-8859-1"?>\n<!DOCTYPE book [<!ENTITY name "The > name">]>
<book xml:lang="en"><title>Über &name;</title><p>One <em>two</em> three</p><n>12</n></book>""".encode("latin-1"),
    "strings.xml": b"""<resources><string name="a">Don\\'t <b>go</b> &amp; stay</string><string name="b"
translatable="false">No</string><plurals name="c"><item quantity="one">One file</item></plurals><string
name="d"><![CDATA[In a <i title="x">box</i>]]></string></resources>""",
    "films.srt": b"""1\r\n00:00:01,000 --> 00:00:02,000 X1:5\r\n{\\an8}<i>When it rains</i>\r\n
2\r\n00:00:02,000 --> 00:00:03,000
{\\an8}<i>we stay in.</i>\r\n\r\n3\r\n00:00:04,000 --> 00:00:05,000\r\n- Hello, <b>you</b>.\r\n- Yes?\r\n""",
    "films.vtt": b"""WEBVTT\nLanguage: en\n\nNOTE It stays

first
00:01.000 --> 00:02.500 align:start
<v Bob>Fish &amp; chips\n""",
    "app.json": rb"""{"a": {"b_one": "One \"file\"", "n": 3}, "list": ["A line\nand another", "<b>Bold</b> &amp; more"],
        "icu": "I have {n, plural, one {a # file} other {{m, select, a {her files} other {files}}}} here",
        "u": "\u00e4h"}""",
    "app.properties": rb"""# stays
one = A line \
      goes on
two:W\u00f6rter\nhere""",
    "app.strings": b"""/* stays */\n"key" = "Say \\"yes\\"";\nother = "Now\\nthen"; // stays\n""",
    "app.stringsdict": b"""<plist><dict><key>k</key><dict>
<key>one</key><string>One &lt; two</string></dict></dict></plist>""",
    "report.docx": docx("<w:p><w:r><w:t>One </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>bold</w:t></w:r></w:p>"),
    "slides.pptx": pptx("<a:p><a:r><a:t>One</a:t></a:r><a:br/><a:r><a:t>Two</a:t></a:r></a:p>"),
    "cells.xlsx": xlsx("<si><t>One &amp; two</t></si><si><r><t>Three</t></r></si>"),
    "report.odt": odf("text", "<text:p>One <text:span>bold</text:span></text:p>", meta="<dc:title>A title</dc:title>"),
    "cells.ods": odf("spreadsheet", "<table:table-cell><text:p>One</text:p></table:table-cell>"),
    "slides.odp": odf("presentation", "<draw:frame><svg:title>Two</svg:title><text:p>One</text:p></draw:frame>"),
    "report.fodt": b"""<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/">
<office:meta><dc:title>A title</dc:title></office:meta><office:body><office:text>
<text:h>A heading</text:h><text:p>One <text:span>bold</text:span></text:p></office:text></office:body>
</office:document>""",
    "book.epub": epub("<p>One <b>bold</b> word</p>"),
}


def rendered(unit: Unit, text: str) -> str:
    """Return a translation of the same number of words, with the tags where they were."""
    from transduce.imports import numpy as np
    from transduce.text import word_spans

    n_words = len(word_spans(unit.text))
    return unit.put_back(text, word_spans(text), np.eye(n_words, dtype=np.float32))


@pytest.mark.parametrize("name", SAMPLES)
def test_without_translations_the_bytes_are_the_same(name: str) -> None:
    document = read_document(SAMPLES[name], name)
    assert document.segments
    assert document.written([None] * len(document.segments)) == SAMPLES[name]


@pytest.mark.parametrize("name", SAMPLES)
def test_translations_are_found_again(name: str) -> None:
    document = read_document(SAMPLES[name], name)
    upper = [rendered(each.unit, each.unit.text.upper()) for each in document.segments]
    written = read_document(document.written(upper), name)
    found = [each.target or each.unit.text for each in written.segments]  # formats of pairs keep their sources
    assert found == [each.unit.text.upper() for each in document.segments]


DAMAGED = {
    "a.txt": b"\xff",
    "no tags.html": b"a < b, 3 > 2",
    "cut.xml": b"<a><b>text</a>",
    "bomb.xml": b'<!DOCTYPE a [<!ENTITY b "%s">%s]><a>&k;</a>'
    % (b"x" * 100, b"".join(b'<!ENTITY %c "%s">' % (n + 99, b"&%c;" % (n + 98) * 100) for n in range(9))),
    "unknown.xml": b'<?xml version="1.0" encoding="klingon"?><a>text</a>',
    "idna.html": b'<meta charset="idna"><p>text \xff',
    "cut.json": b'{"a": "text',
    "deep.json": b"[" * 100_000,
    "no times.srt": b"1\ntext\n",
    "other.fodt": b"<a>text</a>",
    "entity.fodt": b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><office:document a="">&x;</office:document>',
    "cut.strings": b'"a" = "text',
    "cut.stringsdict": b"<plist>",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_told_in_one_line(name: str) -> None:
    with pytest.raises(DataError) as caught:
        read_document(DAMAGED[name], name)
    assert str(caught.value).startswith(f"{name}: ")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("encoding", ["PunyCode", "idna", "unicode_escape"])
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.html", '<meta charset="{}"><p>text'),
        ("a.xml", '<?xml version="1.0" encoding="{}"?><a>text</a>'),
        ("a.po", 'msgid ""\nmsgstr "Content-Type: text/plain; charset={}\\n"\n'),
    ],
)
def test_what_is_no_encoding_of_files_is_unknown(encoding: str, name: str, data: str) -> None:
    with pytest.raises(DataError, match=f"its encoding is '{encoding}', which is unknown here"):
        read_document(data.format(encoding).encode(), name)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_truncated_document_is_read_or_refused(name: str) -> None:
    data = SAMPLES[name]
    for end in range(0, len(data), 7):
        try:
            document = read_document(data[:end], name)
        except DataError:
            continue
        assert document.written([None] * len(document.segments)) == data[:end]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("deep.md", b"> " * 3_000 + b"text"),
        ("images.md", b"![" * 500 + b"text" + b"](u)" * 500),
        ("deep.html", b"<p>" + b"<b>" * 20_000 + b"text"),
        ("deep.xml", b"<a>" * 20_000 + b"text" + b"</a>" * 20_000),
        ("deep.json", b'{"a": "' + b"{a, select, b {" * 500 + b"text" + b"}" * 1_000 + b'"}'),
    ],
)
def test_absurd_depth_is_read_or_refused(name: str, data: bytes) -> None:
    try:
        document = read_document(data, name)
    except DataError:
        return
    assert document.written([None] * len(document.segments)) == data


CUE = "1\n00:00:01,000 --> 00:00:02,000\n"
HOSTILE: dict[str, tuple[str, str | bytes]] = {  # each took seconds or, some characters longer, for ever
    "encoding": ("a.html", f"<meta charset=punycode><p>x-{'a' * 300_000}"),
    "options": ("a.po", f'msgid "-a{",-a" * 40} x"\nmsgstr ""\n'),
    "flags": ("a.po", f'#, c-format\nmsgid "%{"0" * 30_000}! x"\nmsgstr ""\n'),
    "plural forms": ("a.po", f'msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=n{" " * 30_000}x;"\n'),
    "comments": ("a.xml", "<!---->" * 60 + "<a>text</a>"),
    "attributes": ("a.xlf", f'<xliff version="1.2"><file {"a" * 30_000}></file></xliff>'),
    "long tag": ("a.srt", f"{CUE}<{'a' * 30_000}"),
    "many tags": ("a.srt", f"{CUE}{'<i>' * 10_000}text"),
    "notes": ("a.srt", f"{CUE}text{'♪' * 20_000}x"),
    "lines": ("a.srt", CUE + "some words in a line\n" * 2_000),
    "spaces": ("a.md", f"!!! {' ' * 2_000}^"),
    "marks": ("a.docx", docx(f"<!--{''.join(f'<?{number}-' for number in range(60_000))} --><w:p/>")),
    "styles": ("a.docx", docx("<w:p><w:r><w:t>One</w:t></w:r></w:p>", styles=f"<w:pPrDefault>{' ' * 100_000}<w:x/>")),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_documents_take_linear_time(what: str) -> None:
    name, data = HOSTILE[what]
    started = time.process_time()
    with contextlib.suppress(DataError):
        document = read_document(data if isinstance(data, bytes) else data.encode(), name, Reading(is_protected=True))
        document.written([each.unit.raw for each in document.segments], tgt_language="ar")
    assert time.process_time() - started < 2  # a tenth of a second is usual


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("is_protected", [False, True], ids=["", "protected"])
def test_a_translator_that_changes_nothing_gives_the_same_bytes(name: str, is_protected: bool) -> None:
    work = DocumentTranslation.of(SAMPLES[name], name, tgt_language="de", is_protected=is_protected)
    result = work.finished([(rendered(unit, unit.text), ()) for unit in work.units])
    assert result.data == SAMPLES[name]
    assert (result.report.translated, result.report.remarks) == (0, [])


class Echo:
    """A memory that has every text, as its own translation."""

    def match(self, text: str, before: str = "", after: str = "") -> Match:
        return Match(text, text, 1.0)


@pytest.mark.parametrize("name", [*SAMPLES, "placeholders.po", "placeholders.json", "placeholders.strings"])
@pytest.mark.parametrize("is_protected", [False, True], ids=["", "protected"])
def test_a_memory_has_texts_with_their_placeholders(name: str, is_protected: bool) -> None:
    data = {
        "placeholders.po": b'msgid ""\nmsgstr "Language: de\\n"\n\nmsgid "Hello {name}, %d files"\nmsgstr ""\n',
        "placeholders.json": b'{"a": "Hello {name}, %d files"}',
        "placeholders.strings": b'"a" = "Hello %@, %d files";',
    }.get(name) or SAMPLES[name]
    units = DocumentTranslation.of(data, name, tgt_language="de", is_protected=is_protected, wanted="all").units
    found = known(Echo(), [(unit, "") for unit in units])  # type: ignore[arg-type]
    assert [None if each is None else each.text for each in found] == [
        None if each is None else rendered(unit, unit.text) for unit, each in zip(units, found, strict=True)
    ]
    if name.startswith("placeholders"):
        assert None not in found


@pytest.mark.parametrize("is_protected", [False, True], ids=["", "protected"])
def test_a_memory_knows_menus_without_their_accelerators(is_protected: bool) -> None:
    data = b'msgid ""\nmsgstr ""\n\nmsgid "_File %s"\nmsgstr ""\n'
    document = read_document(data, "a.po", Reading(is_protected))
    [found] = known(Echo(), [(each.unit, "") for each in document.segments])  # type: ignore[arg-type]
    assert found is not None
    assert found.source == "File %s"
    assert b'msgstr "_File %s"' in document.written([found.text])


@pytest.mark.parametrize("name", SAMPLES)
def test_every_text_is_translated(name: str) -> None:
    work = DocumentTranslation.of(SAMPLES[name], name, tgt_language="de", wanted="all")
    assert work.units
    report = work.finished([(rendered(unit, unit.text.upper()), ()) for unit in work.units]).report
    assert (report.remarks, report.translated + sum(report.kept.values())) == ([], report.segments)
    assert report.kept.keys() <= {"no-words", "equal", "not-wanted"}


def test_a_review_shows_the_pair_that_the_document_has(translator: Translator, tmp_path: Path) -> None:
    texts = ["Close", "Open", "Hello {name}!", "Open"]
    pairs = [("Close", "Zu"), ("Open", "Auf"), ("Hello {name}!", "{name}!"), ("Open", "Offen"), ("Print", "Druck")]
    write_memory(tmp_path / "a.tm", [pairs, [("Open", "Offen")]], src_language="en", tgt_language="de")
    data = "".join(f'msgctxt "{n}"\nmsgid "{text}"\nmsgstr ""\n\n' for n, text in enumerate(["Shut", *texts])).encode()
    model = translator.with_memory(Memory(tmp_path / "a.tm"))
    document = translate_document(model, data, "a.po", review_terms=Terms())
    reviewed = document.reviewed[1:]
    assert [(each.key or "".join(map(str, each.source)), *each.target) for each in reviewed] == pairs[:4]
    assert all(f'msgstr "{target}"'.encode() in document.data for _, target in pairs[:4])


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(DataError, match=r"'a\.xyz' is no document of a known format; known are \.txt"):
        read_document(b"", "a.xyz")


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """A model that knows nothing."""
    tokenizers = Tokenizers(byte_tokenizer(), byte_tokenizer())
    n_tokens = tokenizers.tgt.size
    config = TransformerConfig(
        d_model=16, d_ff=16, n_heads=2, d_k=8, d_v=8, n_encoder_layers=1, n_decoder_layers=1, src_vocab_size=n_tokens,
        tgt_vocab_size=n_tokens,
    )  # fmt: skip
    model = stored_model(config, tmp_path_factory.mktemp("weights"))
    return Translator(model, tokenizers, GreedySearchConfig(max_extra_tokens=3), direction="en-de")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_review_has_all_texts_and_tags(translator: Translator, name: str) -> None:
    document = translate_document(translator, SAMPLES[name], name, review_terms=Terms())
    assert document.data == translate_document(translator, SAMPLES[name], name).data
    report = document.report
    assert len(document.reviewed) == report.segments - report.kept.get("no-words", 0)
    for text in document.reviewed:
        source, target = ({each for each in side if isinstance(each, Tag)} for side in (text.source, text.target))
        assert text.place
        assert text.state or source == target


@pytest.mark.parametrize("name", ["a.html", "zip.html", "a.po", "a.json", "a.docx", "a.odt"])
def test_what_is_too_long_to_be_read_at_once_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("formats", "package_document"):
        monkeypatch.setattr(f"transduce.documents.{module}.MAX_TEXT_BYTES", 100)
    zipped = {"a.docx": docx("<w:p/>"), "a.odt": odf("text", "<text:p/>"), "zip.html": b"PK\x03\x04" + b"<p>x" * 30}
    data = zipped.get(name, b"x" * 101)
    with pytest.raises(DataError, match=r"bytes, of which 100 are read at once; divide it$"):
        read_document(data, name)


def test_a_file_that_begins_like_html_has_tags() -> None:
    with pytest.raises(DataError, match="it has no HTML tags"):
        read_document(b"<!DOCTYPE ht", "a.html")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", b'{"a": "Now {name} reads"}'),
        ("a.properties", b"a = Now {name} reads\n"),
        ("a.strings", b'"a" = "Now {name} reads";\n'),
        ("strings.xml", b'<resources><string name="a">Now {name} reads</string></resources>'),
    ],
)
def test_a_message_without_its_placeholder_stays(name: str, data: bytes) -> None:
    work = DocumentTranslation.of(data, name, tgt_language="de")
    result = work.finished([("Nun liest", ()) for _ in work.units])
    assert (result.data, result.report.kept) == (data, {"placeholders": 1})
