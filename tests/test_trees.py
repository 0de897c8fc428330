"""Penn brackets."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from said import naming
from transduce.errors import TreeError
from transduce.trees import (
    Tree,
    escape_brackets,
    parse_tree,
    parse_trees,
    plain,
    tree_or_none,
    unescaped,
    without_function_tags,
)

TREEBANKS = Path(__file__).parents[2] / "shared" / "data" / "trees"

HINT = "-LRB-", "-RRB-"

SYMBOLS = st.text(st.characters(codec="utf-8", exclude_characters="()", exclude_categories=("Z", "C")), min_size=1)
TREES = st.recursive(
    st.builds(lambda label, word: Tree(label, word=word), SYMBOLS, SYMBOLS),
    lambda inner: st.builds(lambda label, children: Tree(label, tuple(children)), SYMBOLS, st.lists(inner, min_size=1)),
    max_leaves=12,
)


def test_reading_and_writing() -> None:
    text = "(TOP (S (NP-SBJ (DT The) (NN dog)) (VP (VBZ sleeps)) (. .)))"
    tree = parse_tree(text)
    assert str(tree) == text
    assert [(leaf.label, leaf.word) for leaf in tree.leaves()] == [
        ("DT", "The"), ("NN", "dog"), ("VBZ", "sleeps"), (".", "."),
    ]  # fmt: skip
    assert tree.words() == ["The", "dog", "sleeps", "."]
    assert [node.label for node in tree.nodes()] == ["TOP", "S", "NP-SBJ", "DT", "NN", "VP", "VBZ", "."]
    without_label = parse_tree("  ( (S\n (VB Go)))  ")
    assert without_label == Tree("", (Tree("S", (Tree("VB", word="Go"),)),))
    assert str(without_label) == "( (S (VB Go)))"
    assert plain(without_label) == parse_tree("(TOP (S (VB Go)))")


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ("( (ROOT (S (VB Go))))", "(TOP (S (VB Go)))"),
        ("(S1 (S (VB Go)))", "(TOP (S (VB Go)))"),
        ("(S (VB Go))", "(TOP (S (VB Go)))"),
        ("(NN dog)", "(TOP (NN dog))"),
        ("(TOP (S (VB Go)) (. !))", "(TOP (S (VB Go)) (. !))"),
        ("(S (NP (NN dog)) ((VP-X (VB go))))", "(TOP (S (NP (NN dog)) (VP (VB go))))"),
        ("( (NN a) ( (NN b)))", "(TOP (NN a) (NN b))"),
    ],
)
def test_what_parsers_are_trained_on(tree: str, expected: str) -> None:
    assert str(plain(parse_tree(tree))) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("(P this) (Q is) (R a)", "(TOP (P this) (Q is) (R a))"),
        ("(TOP (S (NP) (VB go)) (-NONE- ))", "(TOP (S (VB go)))"),
        ("(TOP (S ( go)))", "None"),
        ("(TOP (NP ((X))))", "None"),
        ("", "None"),
        ("()", "None"),
    ],
)
def test_brackets_without_words_are_nothing_to_parseval(line: str, expected: str) -> None:
    assert str(tree_or_none(line)) == expected


def test_blanks_of_other_kinds_are_part_of_a_word() -> None:
    assert parse_tree("(NP (CD 10\u00a0000) (NN day\u2028s))").words() == ["10\u00a0000", "day\u2028s"]


@given(TREES)
def test_what_is_written_is_read(tree: Tree) -> None:
    assert parse_tree(str(tree)) == tree


@given(st.lists(TREES))
def test_lines_may_break_anywhere_between_brackets(trees: list[Tree]) -> None:
    text = " ".join(map(str, trees)).replace(") (", ")\n \t(").replace("))", ") )\n")
    assert list(parse_trees(text.split("\n"))) == trees


def test_deep_trees_need_no_deep_stack() -> None:
    depth = 5000
    text = "(S " * depth + "(NN dog)" + ")" * depth
    tree = parse_tree(text)
    assert str(tree) == text
    assert tree.words() == ["dog"]
    assert tree == parse_tree(text)
    assert len({tree, parse_tree(text)}) == 1
    assert repr(tree) == f"<Tree {text}>"
    assert str(plain(tree)) == f"(TOP {text})"


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("", [1, 1, "'('"]),
        ("word", [1, 1, "'('", "'word'"]),
        ("(S (NP (NN dog))", [1, 1, "'S'"]),
        ("(S (NN dog))) ", [1, 13, "')'"]),
        ("(S (NN dog)) (S (NN cat))", [1, 14, "'('"]),
        ("(S ())", [1, 4, "''", *HINT]),
        ("(S (NP ))", [1, 4, "'NP'", *HINT]),
        ("(S dog cat)", [1, 8, "'('", "')'", "'cat'"]),
        ("(S (NN dog) cat)", [1, 13, "'('", "')'", "'cat'"]),
        ("(S dog (NN cat))", [1, 1, "'S'", "'dog'"]),
    ],
)
def test_what_is_no_tree_is_refused_with_its_place(text: str, facts: list[object]) -> None:
    with pytest.raises(TreeError, match=naming(*facts)):
        parse_tree(text)


def test_the_place_is_that_in_the_file() -> None:
    with pytest.raises(TreeError, match=naming(3, 3, "'NP'", *HINT)):
        list(parse_trees(["(S (NN dog))", "(S", "  (NP", "))"]))
    with pytest.raises(TreeError, match=naming(2, 1, "'S'")):
        list(parse_trees(["(S (NN dog))", "(S (NN cat)"]))


def test_a_node_has_children_or_a_word() -> None:
    with pytest.raises(TreeError, match=naming("children", "word")):
        Tree("NP")
    with pytest.raises(TreeError, match=naming("children", "word")):
        Tree("NP", (Tree("NN", word="dog"),), word="dog")


@pytest.mark.parametrize("line", ["", "  ", "()", "(())", "(TOP )", "( (S ))", "(TOP (S (NP)))"])
def test_a_line_without_a_word_has_no_tree(line: str) -> None:
    assert tree_or_none(line) is None


@pytest.mark.parametrize("line", ["word", "(S (NN dog)", "(()", "(S dog cat)"])
def test_a_broken_line_is_an_error_all_the_same(line: str) -> None:
    with pytest.raises(TreeError):
        tree_or_none(line)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ("( (S (NP-SBJ-1 (-NONE- *)) (VP (VB Go))))", "(TOP (S (VP (VB Go))))"),
        ("(ROOT (S=2 (NP (NP-A (-NONE- *T*-1))) (VP-B=3 (VB Go))))", "(TOP (S (VP (VB Go))))"),
        ("(S1 (VB Go))", "(TOP (VB Go))"),
        ("(S (-LRB- -LRB-) (VB-X Go))", "(TOP (S (-LRB- -LRB-) (VB-X Go)))"),
        ("(NN dog)", "(TOP (NN dog))"),
    ],
)
def test_what_the_evaluation_does_not_see_is_taken_away(tree: str, expected: str) -> None:
    assert str(plain(parse_tree(tree))) == expected


def test_nothing_but_traces() -> None:
    with pytest.raises(TreeError, match="trace"):
        plain(parse_tree("(TOP (NP (-NONE- *)))"))


@given(TREES)
def test_plain_trees_stay_plain(tree: Tree) -> None:
    try:
        once = plain(tree)
    except TreeError:
        assert all(leaf.label == "-NONE-" for leaf in tree.leaves())
        return
    assert plain(once) == once
    assert once.words() == [leaf.word for leaf in tree.leaves() if leaf.label != "-NONE-"]
    assert once.label == "TOP"


def test_brackets_in_words() -> None:
    assert unescaped("-LRB--RRB--LSB--RSB--LCB--RCB-") == "()[]{}"
    assert unescaped("-LRB") == "-LRB"
    assert escape_brackets("a(b)c") == "a-LRB-b-RRB-c"
    assert [without_function_tags(label) for label in ("NP-SBJ", "NP=1", "-NONE-", "PRP$")] == [
        "NP", "NP", "-NONE-", "PRP$",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["gum/dev", "craft/dev", "nltk_wsj_sample/dev"])
def test_treebanks_are_read_and_written_unchanged(name: str) -> None:
    path = TREEBANKS / f"{name}.ptb.xz"
    if not path.exists():
        pytest.skip(f"no {path}")
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        kept = [line.rstrip("\n") for line in lines]
    trees = list(parse_trees(kept))
    assert len(trees) == len(kept) > 200
    assert [str(tree) for tree in trees] == kept
    for tree in trees:
        assert plain(tree).words() == [leaf.word for leaf in tree.leaves() if leaf.label != "-NONE-"]
