"""Texts with tags as words and tags apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transduce.text import word_spans
from transduce.text.markup import Unit, divide, html_rules
from transduce.text.pieces import Tag, marked, pieces_of, pieces_of_marked

TEXTS = st.lists(
    st.sampled_from(["a ", "b", " c", "&lt;", "<b>", "</b>", "<i>", "</i>", '<img src="b">', "<b>", "</b>"]),
    max_size=14,
).map("".join)


def test_pieces_of_a_translation_are_in_its_order() -> None:
    [unit] = divide("<b>one</b> &lt;b> <i>two</i>", html_rules())
    assert isinstance(unit, Unit)
    target, weights_XY = "zwei <b> eins", np.eye(3, dtype=np.float32)[::-1]
    rendered = replace(unit, escape=marked).put_back(target, word_spans(target), weights_XY)
    assert pieces_of_marked(unit, rendered) == (
        Tag("open", 2, "<i>"), "zwei", Tag("close", 2, "</i>"), " <b> ", Tag("open", 1, "<b>"), "eins",
        Tag("close", 1, "</b>"),
    )  # fmt: skip


@given(TEXTS)
def test_no_piece_is_lost(markup: str) -> None:
    for unit in divide(markup, html_rules()):
        if isinstance(unit, str):
            continue
        pieces = pieces_of(unit)
        assert "".join(each for each in pieces if isinstance(each, str)) == unit.text
        words = word_spans(unit.text)
        rendered = replace(unit, escape=marked).put_back(unit.text, words, np.eye(len(words), dtype=np.float32))
        found = pieces_of_marked(unit, rendered)
        by_number = lambda tag: (tag.number, tag.kind)  # noqa: E731
        tags, found_tags = ([each for each in side if isinstance(each, Tag)] for side in (pieces, found))
        assert sorted(found_tags, key=by_number) == sorted(tags, key=by_number)
        assert "".join(str(each) for each in found if isinstance(each, str)).split() == unit.text.split()
