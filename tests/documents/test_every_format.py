"""What every document format keeps: the same bytes without translations, every text, every tag."""

from __future__ import annotations

import pytest

from small_packages import docx, epub, odf, pptx, xlsx
from transduce.documents import read_document
from transduce.errors import DataError
from transduce.text.markup import Unit

SAMPLES: dict[str, bytes] = {  # small documents of each format, by file name
    "lines.txt": "\ufeffOne line.\r\n\r\nTwo\tcolumns \n".encode(),
    "report.docx": docx("<w:p><w:r><w:t>One </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>bold</w:t></w:r></w:p>"),
    "slides.pptx": pptx("<a:p><a:r><a:t>One</a:t></a:r><a:br/><a:r><a:t>Two</a:t></a:r></a:p>"),
    "cells.xlsx": xlsx("<si><t>One &amp; two</t></si><si><r><t>Three</t></r></si>"),
    "report.odt": odf("text", "<text:p>One <text:span>bold</text:span></text:p>", meta="<dc:title>A title</dc:title>"),
    "cells.ods": odf("spreadsheet", "<table:table-cell><text:p>One</text:p></table:table-cell>"),
    "slides.odp": odf("presentation", "<draw:frame><svg:title>Two</svg:title><text:p>One</text:p></draw:frame>"),
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
    assert [each.unit.text for each in written.segments] == [each.unit.text.upper() for each in document.segments]


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(DataError, match=r"'a\.xyz' is no document of a known format; known are \.txt"):
        read_document(b"", "a.xyz")
