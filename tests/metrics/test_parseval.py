"""PARSEVAL: each rule on a sentence counted by hand, and all rules against a second, simpler implementation."""

from __future__ import annotations

import random
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.errors import DataError
from transduce.metrics.parseval import DROPPED_LABELS, SentenceScore, Totals, parseval
from transduce.trees import Tree, parse_tree, tree_or_none


def one(gold: str, test: str) -> SentenceScore:
    (score,) = parseval([tree_or_none(gold)], [tree_or_none(test)]).sentences
    return score


def counts(score: SentenceScore) -> tuple[str, int, int, int, int, int, int]:
    return (
        score.status, score.n_matched, score.n_gold, score.n_test, score.n_crossing, score.n_words, score.n_right_tags,
    )  # fmt: skip


GOLD = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))) (. .)))"


@pytest.mark.parametrize(
    ("gold", "test", "expected"),
    [
        # Equal trees: S, NP, VP, NP; the full stop is not kept.
        (GOLD, GOLD, ("valid", 4, 4, 4, 0, 5, 5)),
        # A wrong label, a wrong tag.
        (GOLD, GOLD.replace("(VP (VBZ", "(PP (VBD"), ("valid", 3, 4, 4, 0, 5, 4)),
        # [sees a] crosses the gold NP [a cat], not the VP that holds it.
        (
            GOLD,
            "(TOP (S (NP (DT the) (NN dog)) (VP (X (VBZ sees) (DT a)) (NN cat)) (. .)))",
            ("valid", 3, 4, 4, 1, 5, 5),
        ),
        # One test bracket that crosses two gold ones is one crossing bracket.
        (
            "(TOP (S (A (X (N a) (N b)) (N c)) (B (N d) (N e))))",
            "(TOP (S (N a) (C (N b) (N c) (N d)) (N e)))",
            ("valid", 1, 4, 2, 1, 5, 5),
        ),
        # Punctuation is dropped by its tag in each file: here a mistagged comma makes the words differ.
        ("(TOP (S (NN a) (, ,) (NN b)))", "(TOP (S (NN a) (NN ,) (NN b)))", ("error", 0, 0, 0, 0, 2, 0)),
        ("(TOP (S (NN a) (, ,) (NN b)))", "(TOP (S (NN a) (: ,) (NN b)))", ("valid", 1, 1, 1, 0, 2, 2)),
        # The outer bracket counts unless it is TOP: ROOT and one without a label do.
        ("( (S (NN a)))", "(TOP (S (NN a)))", ("valid", 1, 2, 1, 0, 1, 1)),
        ("(ROOT (S (NN a)))", "(ROOT (S (NN a)))", ("valid", 2, 2, 2, 0, 1, 1)),
        # Brackets side by side; one without words.
        (
            "(S (A (P this)) (B (Q is) (A (R a) (T test))))",
            "(P this) (Q is) (R a) (T test)",
            ("valid", 0, 4, 0, 0, 4, 4),
        ),
        ("(TOP (S (VB go)))", "(TOP (S (NP) (VB go)))", ("valid", 1, 1, 1, 0, 1, 1)),
        # Every label that is dropped; a currency sign and brackets are kept.
        (
            "(TOP (S (`` ``) (NN a) ('' '') (: --) (, ,) (-NONE- *T*) ($ $) (-LRB- -LRB-) (. ?)))",
            "(TOP (S (NN a) ($ $) (-LRB- -LRB-)))",
            ("valid", 1, 1, 1, 0, 3, 3),
        ),
        # A bracket over nothing that is kept does not count; one beside it closes up.
        (
            "(TOP (S (NP (-NONE- *)) (VP (VB Go) (PRN (, ,)))))",
            "(TOP (S (VP (VB Go))))",
            ("valid", 2, 2, 2, 0, 1, 1),
        ),
        # Function tags and indices are cut; also what stands before the first hyphen only.
        ("(TOP (S-TPC-1 (NP=2 (NN a))))", "(TOP (S (NP-SBJ (NN a))))", ("valid", 2, 2, 2, 0, 1, 1)),
        # Labels of words are not cut.
        ("(TOP (S (NN-X a)))", "(TOP (S (NN a)))", ("valid", 1, 1, 1, 0, 1, 0)),
        # ADVP and PRT are equal, as constituents, with function tags, and as tags.
        ("(TOP (S (ADVP-TMP (RB a)) (ADVP b)))", "(TOP (S (PRT (RB a)) (PRT b)))", ("valid", 2, 2, 2, 0, 2, 2)),
        # ROOT and S1 count; TOP does not, wherever it stands.
        ("(ROOT (NN a))", "(TOP (NN a))", ("valid", 0, 1, 0, 0, 1, 1)),
        ("(TOP (S1 (TOP-X (NN a))))", "(TOP (S1 (NN a)))", ("valid", 1, 1, 1, 0, 1, 1)),
        # A constituent with a dropped label does not count, nor does it cross.
        ("(TOP (S (X (NN a) (NN b)) (NN c)))", "(TOP (S (NN a) (: (NN b) (NN c))))", ("valid", 1, 2, 1, 0, 3, 3)),
        # A label that begins with a hyphen becomes empty, and empty labels are equal.
        ("(TOP (S (-X (NN a))))", "(TOP (S (-Y (NN a))))", ("valid", 2, 2, 2, 0, 1, 1)),
        # Of n gold and m test copies of one labelled span the fewer match.
        ("(TOP (NP (NP (NP (NN a)))))", "(TOP (NP (NP (NN a))))", ("valid", 2, 3, 2, 0, 1, 1)),
        ("(TOP (NP (NN a)))", "(TOP (NP (VP (NP (NN a)))))", ("valid", 1, 1, 3, 0, 1, 1)),
        # Words: fewer, others, other case.
        ("(TOP (S (NN a) (NN b)))", "(TOP (S (NN a)))", ("error", 0, 0, 0, 0, 2, 0)),
        ("(TOP (S (NN a) (NN b)))", "(TOP (S (NN a) (NN B)))", ("error", 0, 0, 0, 0, 2, 0)),
        # No tree, or none with a word that is kept.
        ("(TOP (S (NN a)))", "", ("skipped", 0, 0, 0, 0, 1, 0)),
        ("(TOP (S (NN a)))", "(())", ("skipped", 0, 0, 0, 0, 1, 0)),
        ("(TOP (S (NN a)))", "(TOP (S (. .)))", ("skipped", 0, 0, 0, 0, 1, 0)),
        ("(TOP (S (. .)))", "(TOP (S (NN a)))", ("error", 0, 0, 0, 0, 0, 0)),
    ],
)
def test_rules(gold: str, test: str, expected: tuple[str, int, int, int, int, int, int]) -> None:
    assert counts(one(gold, test)) == expected


def test_totals_are_of_sums_over_valid_sentences() -> None:
    sentences = [
        SentenceScore(10, "valid", 3, 4, 5, 0, 10, 9),
        SentenceScore(41, "valid", 1, 6, 1, 3, 38, 38),
        SentenceScore(40, "valid", 2, 2, 2, 2, 40, 40),
        SentenceScore(5, "error", n_words=5),
        SentenceScore(50, "skipped", n_words=50),
    ]
    totals = Totals.from_sentences(sentences)
    assert totals.recall == pytest.approx(100 * 6 / 12)
    assert totals.precision == pytest.approx(100 * 6 / 8)
    assert totals.f1 == pytest.approx(60.0)
    assert totals.complete_match == pytest.approx(100 / 3)
    assert totals.average_crossing == pytest.approx(5 / 3)
    assert totals.no_crossing == pytest.approx(100 / 3)
    assert totals.two_or_less_crossing == pytest.approx(200 / 3)
    assert totals.tagging_accuracy == pytest.approx(100 * 87 / 88)
    assert (totals.valid, totals.skipped, totals.errors) == (3, 1, 1)


def test_length_40_counts_punctuation_but_no_traces() -> None:
    def sentence(n_words: int) -> Tree:
        leaves = [Tree("NN", word=f"w{n}") for n in range(n_words - 10)] + [Tree(",", word=",")] * 10
        return Tree("TOP", (Tree("S", (*leaves, Tree("-NONE-", word="*"))),))

    trees = [sentence(40), sentence(41)]
    result = parseval(trees, trees)
    assert (result.all.valid, result.length_40.valid) == (2, 1)
    assert [each.length for each in result.sentences] == [40, 41]


def test_nothing_is_zero_and_no_error() -> None:
    assert asdict(parseval([], []).all) == dict.fromkeys(asdict(Totals.from_sentences([])), 0)
    assert parseval([None], [None]).all.skipped == 1


def test_as_many_of_both() -> None:
    with pytest.raises(DataError, match=r"\b2\b.*\b1\b"):
        parseval([None, None], [None])


def test_ten_errors_do_not_end_it() -> None:
    gold = [parse_tree("(TOP (S (NN a)))")] * 30
    test = [parse_tree("(TOP (S (NN b)))")] * 25 + gold[:5]
    assert (parseval(gold, test).all.errors, parseval(gold, test).all.f1) == (25, 100.0)


# A second implementation, from the same rules, with lists and loops.


def plainly(gold: Tree, test: Tree) -> tuple[str, int, int, int, int]:
    def walk(tree: Tree, words: list[str], found: list[tuple[str, int, int]]) -> None:
        if tree.word is not None:
            if tree.label not in DROPPED_LABELS:
                words.append(tree.word)
            return
        place, start = len(found), len(words)
        found.append(("", 0, 0))
        for child in tree.children:
            walk(child, words, found)
        label = tree.label
        for sign in "-=":
            label = label.split(sign)[0]
        found[place] = ("ADVP" if label == "PRT" else label, start, len(words))

    sides = []
    for tree in (gold, test):
        words: list[str] = []
        found: list[tuple[str, int, int]] = []
        walk(tree, words, found)
        sides.append((words, [each for each in found if each[1] != each[2] and each[0] not in DROPPED_LABELS]))
    (gold_words, gold_spans), (test_words, test_spans) = sides
    if not test_words:
        return "skipped", 0, 0, 0, 0
    if gold_words != test_words:
        return "error", 0, 0, 0, 0
    free, matched = list(test_spans), 0
    for span in gold_spans:
        if span in free:
            free.remove(span)
            matched += 1
    crossing = 0
    for _, start, end in test_spans:
        inside = set(range(start, end))
        others = [set(range(first, last)) for _, first, last in gold_spans]
        crossing += any(inside & other and inside - other and other - inside for other in others)
    return "valid", matched, len(gold_spans), len(test_spans), crossing


def random_tree(draw: random.Random, words: list[tuple[str, str]]) -> Tree:
    """Draw random brackets over the given tagged words."""
    if len(words) == 1 and draw.random() < 0.7:
        return Tree(words[0][0], word=words[0][1])
    label = draw.choice(["NP", "VP", "PRT", "ADVP", "S-X", "TOP", "NP-SBJ=1", ":", "-A"])
    if len(words) == 1 or draw.random() < 0.15:
        return Tree(label, (random_tree(draw, words),))
    cut = draw.randint(1, len(words) - 1)
    return Tree(label, (random_tree(draw, words[:cut]), random_tree(draw, words[cut:])))


@given(st.integers(0, 10_000), st.integers(1, 9))
def test_both_implementations_agree(seed: int, n_words: int) -> None:
    draw = random.Random(seed)
    tags = ["NN", "DT", ",", "-NONE-", "PRT", "ADVP"]
    tagged = [(draw.choice(tags), f"w{draw.randint(0, 2)}") for _ in range(n_words)]
    other = [(draw.choice(tags), word) if draw.random() < 0.1 else (tag, word) for tag, word in tagged]
    gold, test = random_tree(draw, tagged), random_tree(draw, other)
    score = parseval([gold], [test]).sentences[0]
    expected = plainly(gold, test)
    assert (score.status, score.n_matched, score.n_gold, score.n_test, score.n_crossing) == expected
    own = parseval([gold], [gold]).sentences[0]
    assert own.status != "error"
    if own.status == "valid":
        assert own.is_complete
        assert own.n_crossing == 0
        assert own.n_right_tags == own.n_words


def test_deep_trees_need_no_deep_stack() -> None:
    deep = parse_tree("(S " * 4000 + "(NN a)" + ")" * 4000)
    assert parseval([deep], [deep]).all.f1 == 100
