"""Whatever the seed, the grammar corpus keeps its promises."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.config import Split
from transduce.corpora.grammar import generate_pairs
from transduce.corpora.grammar.german import STRONG, WEAK, Case, Column
from transduce.corpora.grammar.lexicon import Adjective, Noun, load_lexicon
from transduce.corpora.grammar.phrases import DETERMINERS, NounPhrase
from transduce.trees import parse_tree

SPLITS = st.sampled_from(("train", "dev", "test"))
NOUNS = st.sampled_from([noun for noun in load_lexicon().nouns.values() if noun.is_countable])
ADJECTIVES = st.sampled_from(list(load_lexicon().adjectives.values()))


@settings(max_examples=15)
@given(split=SPLITS, seed=st.integers(), n_pairs=st.integers(0, 20), n_more=st.integers(0, 10))
def test_streams_are_pure_distinct_and_have_prefixes(split: Split, seed: int, n_pairs: int, n_more: int) -> None:
    shorter = list(generate_pairs(split, n_pairs=n_pairs, seed=seed))
    longer = list(generate_pairs(split, n_pairs=n_pairs + n_more, seed=seed))
    assert longer[:n_pairs] == shorter
    assert len({pair.en for pair in longer}) == n_pairs + n_more


@settings(max_examples=10)
@given(split=SPLITS, seed=st.integers())
def test_final_punctuation_is_the_same_everywhere(split: Split, seed: int) -> None:
    for pair in generate_pairs(split, n_pairs=10, seed=seed):
        assert pair.en[-1] == pair.de[-1] == [leaf.word for leaf in parse_tree(pair.tree).leaves()][-1]
        assert pair.en[0].isupper()
        assert pair.de[0].isupper()


@given(noun=NOUNS, adjective=ADJECTIVES, word=st.sampled_from(sorted(DETERMINERS)), case=st.sampled_from(Case))
def test_the_determiner_decides_the_ending_of_the_adjective(
    noun: Noun, adjective: Adjective, word: str, case: Case
) -> None:
    determiner = DETERMINERS[word]
    words = NounPhrase(determiner, noun, False, adjective).german(case).split()
    assert words[-1] == noun.forms[0][case]
    assert words[-2] == adjective.stem + determiner.endings[case][noun.column]


@given(noun=NOUNS, case=st.sampled_from(Case))
def test_a_dative_plural_ends_in_n_or_s(noun: Noun, case: Case) -> None:
    form = noun.forms[1][case]
    assert form == noun.forms[1][Case.NOMINATIVE] or (case is Case.DATIVE and form.endswith("n"))
    assert noun.forms[1][Case.DATIVE][-1] in "ns"


@given(case=st.sampled_from(Case), column=st.sampled_from(Column))
def test_weak_endings_are_never_stronger_than_strong_ones(case: Case, column: Column) -> None:
    assert WEAK[case][column] in ("e", "en")
    assert STRONG[case][column] in ("e", "en", "er", "es", "em")
