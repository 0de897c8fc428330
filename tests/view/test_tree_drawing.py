"""Indented trees and tree drawings."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from transduce.trees import parse_tree
from transduce.view.trees import draw_tree, indented

SENTENCE = parse_tree(
    "(TOP (S (NP (NP (DT the) (JJ old) (NN dog)) (PP (IN with) (NP (DT a) (NN bone)))) (VP (VBZ sleeps) "
    "(PP (IN under) (NP (NP (DT the) (NN table)) (PP (IN in) (NP (DT the) (NN kitchen)))))) (-LRB- -LRB-) (. <)))"
)


def test_indented_text_parses_to_the_same_tree() -> None:
    text = indented(SENTENCE)
    assert len(text.splitlines()) > 3
    assert max(map(len, text.splitlines())) <= 100
    assert parse_tree(text) == SENTENCE
    assert indented(parse_tree("(NN dog)")) == "(NN dog)"


def test_drawing_has_every_label_and_the_words_in_order() -> None:
    root = ElementTree.fromstring(draw_tree(SENTENCE))
    name = "{http://www.w3.org/2000/svg}"
    texts = [(float(text.get("x", "")), float(text.get("y", "")), text.text) for text in root.iter(f"{name}text")]
    labels = [node.label for node in SENTENCE.nodes()]
    words = [word.replace("-LRB-", "(") for word in SENTENCE.words()]
    assert sorted(str(text) for _, _, text in texts) == sorted(labels + words)
    bottom = max(y for _, y, _ in texts)
    row = [(x, text) for x, y, text in texts if y == bottom]
    assert [text for _, text in sorted(row)] == words  # from left to right
    gaps = [right - left for (left, _), (right, _) in zip(sorted(row), sorted(row)[1:], strict=False)]
    assert min(gaps) > 20
    n_edges = len(list(root.iter(f"{name}line")))
    assert n_edges == len(labels) - 1 + len(words)
    width = float(re.match(r"0 0 (\d+)", root.get("viewBox", ""))[1])  # type: ignore[index]
    assert all(0 < x < width for x, _, _ in texts)
