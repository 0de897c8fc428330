"""Penn brackets."""

from __future__ import annotations

import pytest

from transduce.errors import TreeError
from transduce.trees import Tree, parse_tree


def test_reading_and_writing() -> None:
    text = "(TOP (S (NP-SBJ (DT The) (NN dog)) (VP (VBZ sleeps)) (. .)))"
    tree = parse_tree(text)
    assert str(tree) == text
    assert [(leaf.label, leaf.word) for leaf in tree.leaves()] == [
        ("DT", "The"), ("NN", "dog"), ("VBZ", "sleeps"), (".", "."),
    ]  # fmt: skip
    assert parse_tree("  ( (S\n (VB Go)))  ") == Tree("TOP", (Tree("S", (Tree("VB", word="Go"),)),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: expected '('"),
        ("word", "column 1: expected '\\('"),
        ("(S (NP (NN dog))", "column 1: the bracket 'S' is never closed"),
        ("(S (NN dog))) ", "column 13: the tree has ended"),
        ("(S (NN dog)) (S (NN cat))", "column 14: the tree has ended"),
        ("(S ())", "column 4: the bracket .* is empty"),
        ("(S dog cat)", "column 4: expected '\\(', got 'dog'"),
    ],
)
def test_what_is_no_tree_is_refused_with_its_column(text: str, message: str) -> None:
    with pytest.raises(TreeError, match=message.replace("'('", "'\\('")):
        parse_tree(text)


def test_a_node_has_children_or_a_word() -> None:
    with pytest.raises(TreeError, match="children or a word"):
        Tree("NP")
    with pytest.raises(TreeError, match="children or a word"):
        Tree("NP", (Tree("NN", word="dog"),), word="dog")
