"""What every document format keeps: the same bytes without translations, every text, every tag."""

from __future__ import annotations

import pytest

from transduce.documents import read_document
from transduce.errors import DataError
from transduce.text.markup import Unit

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


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(DataError, match=r"'a\.xyz' is no document of a known format; known are \.txt"):
        read_document(b"", "a.xyz")
