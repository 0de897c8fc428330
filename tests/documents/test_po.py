"""PO files: what a translation changes in them, and what not."""

from __future__ import annotations

import pytest

from transduce.documents import Reading, read_document
from transduce.documents.plural_forms import plural_forms_of
from transduce.documents.po_reading import read_entries
from transduce.documents.po_writing import quoted_po, with_values
from transduce.errors import DataError

HEADER = """msgid ""
msgstr ""
"Project-Id-Version: x\\n"
"Language: \\n"
"Content-Type: text/plain; charset=CHARSET\\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"
"""


def translated(text: str, targets: dict[str, str], language: str = "de", **reading: object) -> str:
    """Return a file with translations by their sources."""
    document = read_document(text.encode(), "a.po", Reading(**reading))  # type: ignore[arg-type]
    chosen = [targets.get(each.unit.text) if each.is_wanted else None for each in document.segments]
    return document.written(chosen, tgt_language=language).decode()


def test_a_translation_changes_its_message_only() -> None:
    text = """# comment
msgid ""
msgstr "Language: de\\n"

#. note
#: a.c:1
#, c-format
#| msgid "Opens"
msgid "Open %s"
msgstr ""

msgid "Done"
msgstr   "Fertig"

#~ msgid "gone"
#~ msgstr "weg"
"""
    expected = text.replace("#, c-format", "#, fuzzy, c-format").replace(
        '"Open %s"\nmsgstr ""', '"Open %s"\nmsgstr "%s öffnen"'
    )
    assert translated(text, {"Open %s": "%s öffnen", "Done": "Ende"}) == expected
    trusted = translated(text, {"Open %s": "%s öffnen"}, is_trusted=True)
    assert trusted == expected.replace("fuzzy, ", "")


def test_unsure_messages_are_translated_on_request_and_lose_their_mark_when_trusted() -> None:
    text = '#, fuzzy\n#| msgid "Opn"\nmsgid "Open"\nmsgstr "Auf"\n'
    assert translated(text, {"Open": "Öffnen"}) == text
    assert translated(text, {"Open": "Öffnen"}, wanted="fuzzy") == text.replace("Auf", "Öffnen")
    trusted = translated(text, {"Open": "Öffnen"}, wanted="fuzzy", is_trusted=True)
    assert trusted == '#| msgid "Opn"\nmsgid "Open"\nmsgstr "Öffnen"\n'


def test_a_template_becomes_a_file_of_the_language() -> None:
    text = f"""#, fuzzy
{HEADER}
msgid "One file"
msgid_plural "Some files"
msgstr[0] ""
msgstr[1] ""
"""
    forms = plural_forms_of("pl")
    assert forms is not None
    written = translated(text, {"One file": "Jeden plik", "Some files": "Kilka plików"}, "pl", is_trusted=True)
    assert (
        written
        == f"""msgid ""
msgstr ""
"Project-Id-Version: x\\n"
"Language: pl\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: {forms.header}\\n"

msgid "One file"
msgid_plural "Some files"
msgstr[0] "Jeden plik"
msgstr[1] "Kilka plików"
msgstr[2] "Kilka plików"
"""
    )


@pytest.mark.parametrize(
    "header",
    [
        '"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n>=2 && n"\n"<=4 ? 1 : 2);\\n"\n"X: y\\n"',
        '"Language: fr\\nPlural-Forms: nplurals=3; plural=n;\\nX: y\\n"',
        '"Plural-Forms: nplurals=3; "\r\n"plural=n;"\r\n"\\n"\r\n"X: y\\n"',
    ],
)
def test_a_value_of_the_header_may_go_over_lines(header: str) -> None:
    value = "nplurals=1; plural=0;"
    [entry] = read_entries(f'msgid ""\nmsgstr {with_values(header, {"Plural-Forms": value}, chr(10))}\n')
    lines = entry.forms[0].text.split("\n")
    assert [line for line in lines if line[:1] in "PX"] == [f"Plural-Forms: {value}", "X: y", ""]


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", ["Eins", "%d Sachen"]),
        ("ja", ["%d Sachen"]),
        ("ru", ["%d Sachen"] * 3),  # the form of 1 is that of 21, too: it needs the number
    ],
)
def test_plural_forms(language: str, expected: list[str]) -> None:
    forms = plural_forms_of(language)
    assert forms is not None
    header = HEADER.replace("nplurals=INTEGER; plural=EXPRESSION;", forms.header)
    text = header + '\n#, c-format\nmsgid "One"\nmsgid_plural "%d things"\nmsgstr[0] ""\n'
    written = translated(text, {"One": "Eins", "%d things": "%d Sachen"}, language)
    assert written.partition("things")[2].split("\n")[1:-1] == [
        f'msgstr[{number}] "{each}"' for number, each in enumerate(expected)
    ]


def test_only_empty_forms_are_filled() -> None:
    text = 'msgid "One"\nmsgid_plural "Many"\nmsgstr[0] "Eins"\nmsgstr[1] ""\n'
    assert translated(text, {"Many": "Viele"}, is_trusted=True) == text.replace('[1] ""', '[1] "Viele"')


def test_accelerators_are_taken_out_and_put_back() -> None:
    text = 'msgid "_File"\nmsgstr ""\n\nmsgid "Cu_t"\nmsgstr ""\n\nmsgid "R_D of log_file"\nmsgstr ""\n'
    document = read_document(text.encode(), "a.po")
    assert [each.unit.text for each in document.segments] == ["File", "Cut", "R_D of log_file"]
    written = document.written(["Datei", "Ausschneiden", None]).decode()
    assert [line for line in written.split("\n") if line.startswith("msgstr")] == [
        'msgstr "_Datei"',
        'msgstr "_Ausschneiden"',
        'msgstr ""',
    ]


def test_wrong_placeholders_are_refused() -> None:
    text = '#, c-format\nmsgid "%d of %s"\nmsgstr ""\n'
    with pytest.raises(DataError, match=r"line 2: the translation lacks %s"):
        translated(text, {"%d of %s": "%d von"})
    assert 'msgstr "%2$s: %1$d"' in translated(text, {"%d of %s": "%s: %d"})


def test_long_translations_are_wrapped_unless_the_file_is_not() -> None:
    words = "word " * 20
    text = f'msgid "{"w" * 10}"\nmsgstr ""\n'
    written = translated(text, {"w" * 10: words.strip()}, is_trusted=True)
    assert written.partition("msgstr ")[2].startswith('""\n"word word')
    unwrapped = f'msgid "{"a long line " * 12}"\nmsgstr ""\n\n' + text
    assert f'msgstr "{words.strip()}"' in translated(unwrapped, {"w" * 10: words.strip()})


def test_lines_of_a_message_are_units_and_wrapped_ones_are_joined() -> None:
    text = r'msgid "Usage: x\n  -v, --verbose  say more\nThis goes on,\nand ends.\n"' + '\nmsgstr ""\n'
    document = read_document(text.encode(), "a.po")
    assert [each.unit.text for each in document.segments] == ["Usage: x", "say more", "This goes on, and ends."]
    written = document.written(["Aufruf: x", "mehr sagen", "Das geht weiter und endet."]).decode()
    assert r'"This goes on,' not in written.partition("msgstr")[2]
    lines = [line.strip('"') for line in written.partition("msgstr")[2].split("\n")[1:-1]]
    assert lines == [r"Aufruf: x\n", r"  -v, --verbose  mehr sagen\n", r"Das geht\n", r"weiter und\n", r"endet.\n"]


def test_the_source_stands_in_for_lines_and_forms_without_a_translation() -> None:
    text = r'msgid "Name:\n  Berlin\nCountry"' + '\nmsgstr ""\n'
    lines = r'msgstr ""|"Name:\n"|"  Berlin\n"|"Land"|'.replace("|", "\n")
    assert translated(text, {"Country": "Land"}).endswith(lines)
    there = text.replace('""', '"Alt"')
    assert translated(there, {"Country": "Land"}, wanted="all") == there
    for singular in ("%d Computer", "%d"):
        plural = f'msgid "{singular}"\nmsgid_plural "%d Computers"\nmsgstr[0] ""\nmsgstr[1] ""\n'
        expected = plural.replace('[0] ""', f'[0] "{singular}"').replace('[1] ""', '[1] "%d Rechner"')
        assert translated(plural, {"%d Computers": "%d Rechner"}, is_trusted=True) == expected
        assert translated(plural, {}) == plural


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'msgid "a\nmsgstr ""\n', "line 1"),
        (b'msgid "a"\n', "no msgstr"),
        (b'msgstr "a"\n', "no msgid"),
        (b'msgid "a"\nmsgid "b"\nmsgstr ""\n', "second msgid"),
        (b'msgid ""\nmsgstr "Content-Type: x; charset=klingon\\n"\n', "klingon"),
        (b'msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=(n;\\n"\n', "Plural-Forms"),
        (b'msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=n;\\n"\n', "Plural-Forms"),
        (b'msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=n%0;\\n"\n', "Plural-Forms"),
        (b'\xff\nmsgid "a"\nmsgstr ""\n', "utf-8"),
        (b"some prose\n", "line 1"),
    ],
)
def test_damage_is_one_line(data: bytes, words: str) -> None:
    with pytest.raises(DataError) as error:
        read_document(data, "a.po")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_character_that_the_encoding_lacks_and_another_language_are_refused() -> None:
    header = 'msgid ""\nmsgstr "Language: fr\\nContent-Type: text/plain; charset=ISO-8859-1\\n"\n\n'
    document = read_document(f'{header}msgid "Price"\nmsgstr ""\n'.encode(), "a.po")
    with pytest.raises(DataError, match=r"'€'"):
        document.written(["€"], tgt_language="fr")
    document = read_document(f'{header}msgid "Price"\nmsgstr "Prix"\n'.encode(), "a.po")
    with pytest.raises(DataError, match=r"'fr'"):
        document.written(["Preis"], tgt_language="de")


def test_writing_as_gettext_does() -> None:
    assert quoted_po("", "msgstr") == 'msgstr ""'
    assert quoted_po("a\nb\n", "msgstr", line_end="\r\n") == 'msgstr ""\r\n"a\\n"\r\n"b\\n"'
