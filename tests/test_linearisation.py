"""Linearised trees: the inverse is exact, and any token sequence is repaired to a tree over the words."""

from __future__ import annotations

import lzma
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from said import naming
from transduce.errors import TreeError
from transduce.linearisation import ANY_TAG, delinearise, leaf_token, linearise, repair
from transduce.trees import Tree, parse_tree, parse_trees, plain

TREEBANKS = Path(__file__).parents[2] / "shared" / "data" / "trees"
HE_RUNS = parse_tree("(TOP (S (NP (PRP He)) (VP (VBZ runs)) (. .)))")

LABELS = st.sampled_from(["S", "NP", "VP", "NN", ",", "X"])
WORDS = st.sampled_from(["a", "b", ",", "(S"])
INNER = st.recursive(
    st.builds(lambda tag, word: Tree(tag, word=word), LABELS, WORDS),
    lambda inner: st.builds(lambda label, children: Tree(label, tuple(children)), LABELS, st.lists(inner, min_size=1)),
    max_leaves=12,
)
TREES = st.builds(lambda children: Tree("TOP", tuple(children)), st.lists(INNER, min_size=1))
SYMBOLS = st.lists(st.sampled_from(["(S", ")S", "(NP", ")NP", "(", ")", "NN", ",", "XX"]))


def test_the_form_of_the_paper() -> None:
    assert linearise(HE_RUNS) == "(S (NP PRP )NP (VP VBZ )VP . )S".split()
    assert linearise(HE_RUNS, leaves="any") == "(S (NP XX )NP (VP XX )VP . )S".split()
    told = [leaf_token(tag, "a", "any") for tag in ("NN", ":", "``", "$", "-LRB-", "HYPH")]
    assert told == ["XX", ":", "``", "XX", "XX", "XX"]


def test_endings_are_read_from_the_words() -> None:
    assert linearise(HE_RUNS, leaves="endings") == "(S (NP XX~he )NP (VP XX~ns )VP . )S".split()
    bracket = parse_tree("(TOP (X (-LRB- -LRB-) (CD 1984) (NN Stra\u00dfe) (NN \u6771\u4eac) (NN a\u00a0\u2028)))")
    assert linearise(bracket, leaves="endings") == "(X XX~( XX~00 XX~?e XX~?? XX~?? )X".split(" ")
    read = delinearise(linearise(HE_RUNS, leaves="endings"), HE_RUNS.words())
    assert str(read) == "(TOP (S (NP (XX He)) (VP (XX runs)) (. .)))"


@given(TREES)
def test_every_tree_comes_back(tree: Tree) -> None:
    words = tree.words()
    assert delinearise(linearise(tree), words) == tree
    assert repair(linearise(tree), words) == tree
    without_tags = delinearise(linearise(tree, leaves="any"), words)
    assert linearise(without_tags, leaves="any") == linearise(tree, leaves="any")
    assert without_tags.words() == words
    assert delinearise(linearise(tree, leaves="endings"), words) == without_tags
    assert repair(linearise(tree, leaves="endings"), words) == without_tags


@given(SYMBOLS, st.lists(WORDS, min_size=1))
def test_any_symbols_make_a_tree_over_the_words(tokens: list[str], words: list[str]) -> None:
    tree = repair(tokens, words)
    assert tree.words() == words
    assert tree.label == "TOP"
    assert repair(linearise(tree), words) == tree
    try:
        assert delinearise(tokens, words) == tree
    except TreeError:
        assert linearise(tree) != tokens


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        # The bracket that closes S also closes all brackets inside it; the remaining word follows it.
        ("(S (NP PRP (VP VBZ )S", "(TOP (S (NP (PRP He) (VP (VBZ runs)))) (XX .))"),
        ("(S (NP PRP )NP (VP VBZ )S .", "(TOP (S (NP (PRP He)) (VP (VBZ runs))) (. .))"),
        ("(S )NP PRP VBZ . )S", "(TOP (S (PRP He) (VBZ runs) (. .)))"),
        ("(S (NP )NP PRP VBZ . NN NN )S", "(TOP (S (PRP He) (VBZ runs) (. .)))"),
        ("", "(TOP (XX He) (XX runs) (XX .))"),
        ("(S (NP PRP )NP", "(TOP (S (NP (PRP He)) (XX runs) (XX .)))"),
    ],
)
def test_repairs(tokens: str, expected: str) -> None:
    assert str(repair(tokens.split(), ["He", "runs", "."])) == expected


def test_words_that_are_left_have_the_tags_that_are_known() -> None:
    tree = repair(["(S", "PRP"], ["He", "runs", "."], [ANY_TAG, ANY_TAG, "."])
    assert str(tree) == "(TOP (S (PRP He) (XX runs) (. .)))"


def test_what_is_known_of_punctuation_is_kept() -> None:
    tree = repair(["(S", "XX", ",", "XX", "NN", ")S"], ["a", "b", ",", "c"], [ANY_TAG, ANY_TAG, ",", None])
    assert str(tree) == "(TOP (S (XX a) (XX b) (, ,) (NN c)))"


def test_no_words_make_no_tree() -> None:
    with pytest.raises(TreeError, match="one word"):
        repair(["(S"], [])


@pytest.mark.parametrize(
    ("tokens", "facts"),
    [
        ("(S PRP )NP", [3, "')NP'", "'S'"]),
        ("PRP )NP", [2, "')NP'", "nothing"]),
        ("(S (NP )NP", [3, "')NP'"]),
        ("(S PRP VBZ . . )S", [5, "'.'", 3]),
        ("(S PRP VBZ .", ["'S'"]),
        ("(S PRP )S", ["'runs'"]),
    ],
)
def test_what_is_no_tree_is_refused(tokens: str, facts: list[object]) -> None:
    with pytest.raises(TreeError, match=naming(*facts)):
        delinearise(tokens.split(), ["He", "runs", "."])


@pytest.mark.parametrize("name", ["gum/dev", "craft/dev", "nltk_wsj_sample/dev"])
def test_treebanks_come_back(name: str) -> None:
    path = TREEBANKS / f"{name}.ptb.xz"
    if not path.exists():
        pytest.skip(f"no {path}")
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        for tree in map(plain, islice(parse_trees(lines), 400)):
            assert delinearise(linearise(tree), tree.words()) == tree
