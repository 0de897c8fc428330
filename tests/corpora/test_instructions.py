"""Instructions of the built-in corpus: ideal responses, held-out combinations, the quality of a response."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.config import DataConfig
from transduce.corpora import CleaningReport, ParallelText, TreebankText
from transduce.corpora.grammar.instructions import INSTRUCTION_KINDS, generate_instructions, response_quality

WORDS = st.lists(st.sampled_from("a b c".split()), max_size=5).map(" ".join)


def test_instructions_follow_from_split_and_seed_and_grow_at_the_end() -> None:
    few, many = (list(generate_instructions("train", n=n, seed=1)) for n in (40, 80))
    assert few == many[:40]
    assert len({each.prompt for each in many}) == 80
    assert {each.kind for each in many} == set(INSTRUCTION_KINDS)
    other = list(generate_instructions("train", n=40, seed=2))
    assert not {each.prompt for each in few} >= {each.prompt for each in other}
    assert {each.prompt for each in generate_instructions("test", n=40, seed=1)}.isdisjoint(
        each.prompt for each in many
    )


def test_each_kind_changes_what_it_says() -> None:
    for each in islice(generate_instructions("dev", n=200, seed=1), 200):
        name, _, text = each.prompt.partition(": ")
        assert name.lower() == each.kind
        words = set(text.rstrip(".?").lower().split())
        match each.kind:
            case "negate":
                assert "not" in each.response.split() or "cannot" in each.response.split()
                assert "not" not in words
            case "past":
                assert each.response != text
            case "shorten":
                assert len(each.response.split()) < len(text.split())
            case "answer":
                assert text.endswith("?")
                assert set(each.response.rstrip(".").lower().split()) <= {word.rstrip(".") for word in words}


@given(ours=WORDS, theirs=WORDS)
def test_quality_is_one_for_the_ideal_only(ours: str, theirs: str) -> None:
    value = response_quality(ours, theirs)
    assert 0 <= value <= 1
    assert (value == 1) == (ours == theirs)
    assert value == response_quality(theirs, ours)


def test_quality_counts_words() -> None:
    assert response_quality("a b c d", "a x c d") == 0.75
    assert response_quality("a b", "a b c d") == 0.5
    assert response_quality("d c b a", "") == 0


@pytest.mark.parametrize("n", [1, 7])
def test_max_pairs_reads_the_first_ones(n: int) -> None:
    first, whole = (ParallelText(DataConfig(corpus="grammar", n_pairs=20, max_pairs=each)) for each in (n, None))
    assert list(first.train("grammar")) == list(whole.train("grammar"))[:n]
    report = first.reports["grammar"]
    assert isinstance(report, CleaningReport)
    assert report.n_read == n
    trees = DataConfig(corpus="grammar", n_pairs=20, max_pairs=n, task="parsing", shared_vocabulary=False)
    assert len(list(TreebankText(trees).train_trees("grammar"))) == n
