"""Whatever the text: a document that can be read is the same bytes again, and takes translations."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.documents import Reading, read_document
from transduce.errors import DataError

NAMES = ["a.html", "a.json", "a.md", "a.properties", "a.srt", "a.strings", "a.vtt", "a.xml"]
WORDS = (
    "a word. A é 字 ... , - * ** _ ~~ ` ``` [ ] ( ) ! ![ ][ ](x) < > </ <b> </b> <i> <br> <!-- --> <p> & &amp; &#13; "
    "\\ \\n \\' \\u00e4 \\ufdd1 \" ' '' # > 1. | |-|-| --- === $ {x} { } {a,plural,one{ {a,select,b{ %s : = 12 @ ? ♪ "
    "{\\an8} http://x.org [^1] \ufeff \ufdd1 \ufdd10\ufdd1 \0 ]]> <![CDATA["
)
PIECES = st.sampled_from(
    [*WORDS.split(" "), "<img alt=b>", "\n", "\r\n", "\n\n", " ", "  \n", "\n> ", "\n- ", "\n    ", "\t"]
)
TEXTS = st.lists(PIECES, max_size=25).map("".join)


def around(name: str, text: str) -> str:
    """Return a document of a format with a text in it."""
    match name:
        case "a.json":
            return json.dumps({"a": text}, ensure_ascii=len(text) % 2 == 0)
        case "a.srt" | "a.vtt":
            times = "00:00:01.000 --> 00:00:02.000\n"
            return f"{'WEBVTT' * (name == 'a.vtt')}\n\n{times}{text}\n\n{times}{text}\n"
        case "a.strings":
            return f'"a" = "{text}";'
        case "a.html":
            return f"<p title='{text}'>{text}"
        case "a.xml":
            return f"<resources><string name='a'>{text}</string></resources>"
        case _:
            return text


@pytest.mark.parametrize("name", NAMES)
@given(text=TEXTS, target=TEXTS, is_protected=st.booleans())
def test_any_text_is_kept(name: str, text: str, target: str, is_protected: bool) -> None:
    data = around(name, text).encode()
    try:
        document = read_document(data, name, Reading(is_protected=is_protected))
    except DataError:
        return
    n_segments = len(document.segments)
    assert document.written([None] * n_segments) == data
    for at, segment in enumerate(document.segments):
        assert segment.unit.text == segment.unit.text.strip() != ""
        if not segment.unit.nodes:
            targets = [segment.unit.put_back(target) if each == at else None for each in range(n_segments)]
            document.written(targets)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("piece", [" ", "<i>", "{\\an8}", "{a,plural,one{", "<!--", "&a", "- ", "♪ ", "[a](b ", "$ "])
def test_no_text_takes_quadratic_time(name: str, piece: str) -> None:
    data = around(name, "a" + piece * 4_000 + "b").encode()
    begin = time.perf_counter()
    try:
        document = read_document(data, name)
        document.written([None] * len(document.segments))
    except DataError:
        pass
    assert time.perf_counter() - begin < 3
