"""The stream of pairs: reproducible, distinct, with held-out combinations, and covering the lexicon."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import islice, pairwise

import pytest

from said import naming
from transduce.config import Split
from transduce.corpora.grammar import GrammarPair, generate_pairs, is_held_out, stream
from transduce.corpora.grammar.choices import choices_for
from transduce.corpora.grammar.holdout import owner_of
from transduce.corpora.grammar.lexicon import load_lexicon
from transduce.corpora.grammar.sentence_sampler import CONSTRUCTION_WEIGHTS
from transduce.corpora.grammar.sentences import realize
from transduce.corpora.grammar.stream import sentences_of_split
from transduce.errors import DataError
from transduce.trees import parse_tree

N_PAIRS = 20_000
WORDS = load_lexicon()


@cache
def training_pairs() -> tuple[GrammarPair, ...]:
    return tuple(generate_pairs("train", n_pairs=N_PAIRS, seed=1))


def text_of_leaves(leaves: Iterable[str]) -> str:
    """Join the tokens of a tree to text."""
    text = " ".join(leaves).replace(" 's", "'s").replace("can not", "cannot")
    return re.sub(r" ([.,?!])", r"\1", text)


def test_a_shorter_call_is_the_beginning_of_a_longer_one() -> None:
    assert tuple(generate_pairs("train", n_pairs=500, seed=1)) == training_pairs()[:500]


def test_seeds_and_splits_differ() -> None:
    first = next(generate_pairs("train", n_pairs=1, seed=1))
    assert next(generate_pairs("train", n_pairs=1, seed=2)) != first
    assert next(generate_pairs("dev", n_pairs=1, seed=1)) != next(generate_pairs("test", n_pairs=1, seed=1))


def test_no_english_sentence_comes_twice() -> None:
    assert len({pair.en for pair in training_pairs()}) == N_PAIRS


def test_an_exhausted_grammar_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    one_sentence = next(sentences_of_split("train", seed=1))

    def the_same_again(split: Split, *, seed: int) -> Iterable[object]:
        while True:
            yield one_sentence

    monkeypatch.setattr(stream, "sentences_of_split", the_same_again)
    with pytest.raises(DataError, match=naming("train", 1, 2)):
        list(generate_pairs("train", n_pairs=2, seed=1))


def test_english_determines_german() -> None:
    german_of: dict[str, str] = {}
    for _, sentence in islice(sentences_of_split("train", seed=3), N_PAIRS):
        pair = realize(sentence)
        assert german_of.setdefault(pair.en, pair.de) == pair.de


def test_training_has_no_held_out_combination() -> None:
    for _, sentence in islice(sentences_of_split("train", seed=4), 5_000):
        assert not any(map(is_held_out, sentence.combinations()))


@pytest.mark.parametrize(("split", "other"), [("dev", "test"), ("test", "dev")])
def test_dev_and_test_have_their_own_held_out_combinations(split: Split, other: Split) -> None:
    for _, sentence in islice(sentences_of_split(split, seed=5), 500):
        owners = {owner_of(combination) for combination in sentence.combinations()}
        assert split in owners
        assert other not in owners


def test_about_four_percent_are_held_out_for_each() -> None:
    combinations = {
        combination
        for split in ("train", "dev", "test")
        for verbs in choices_for(split).verbs.values()
        for choice in verbs
        for noun in choice.objects
        for combination in [("object", choice.verb.lemma, noun.lemma)]
    }
    counts = Counter(map(owner_of, combinations))
    assert 0.025 < counts["dev"] / len(combinations) < 0.055
    assert 0.025 < counts["test"] / len(combinations) < 0.055


def test_every_lexeme_is_trained_on() -> None:
    said = Counter(word for pair in training_pairs() for word in re.findall(r"\w+", pair.en.lower()))
    for noun in WORDS.nouns.values():
        assert sum(said[word] for word in noun.words) >= 20, noun.lemma
    for adjective in WORDS.adjectives.values():
        assert said[adjective.lemma] >= 20, adjective.lemma
    spoken_verbs = Counter(
        lemma
        for _, sentence in islice(sentences_of_split("train", seed=1), 5_000)
        for kind, first, second in sentence.combinations()
        if kind != "adjective"
        for lemma in [second if kind == "subject" else first]
    )
    verbs = {verb.lemma for group in WORDS.verbs.values() for verb in group}
    assert verbs <= set(spoken_verbs)
    names = [name for group in WORDS.names.values() for name in group]
    assert all(said[word.lower()] >= 20 for word in (*names, *WORDS.cities, "twelve", "because", "would"))


def test_every_construction_is_as_frequent_as_its_weight() -> None:
    counts = Counter(name for name, _ in islice(sentences_of_split("train", seed=6), 5_000))
    total = sum(CONSTRUCTION_WEIGHTS.values())
    assert set(counts) == set(CONSTRUCTION_WEIGHTS)
    for name, weight in CONSTRUCTION_WEIGHTS.items():
        assert counts[name] / 5_000 == pytest.approx(weight / total, abs=0.025)


def test_lengths() -> None:
    lengths = [len(pair.en.split()) for pair in training_pairs()]
    assert 8 < sum(lengths) / N_PAIRS < 10
    assert min(lengths) >= 2
    assert max(lengths) <= 32


def test_trees_are_read_back_and_their_leaves_are_the_sentence() -> None:
    for pair in training_pairs()[:3_000]:
        tree = parse_tree(pair.tree)
        assert str(tree) == pair.tree
        assert text_of_leaves(leaf.word or "" for leaf in tree.leaves()) == pair.en


def test_only_labels_of_the_treebank() -> None:
    labels = {label for pair in training_pairs()[:5_000] for label in re.findall(r"\(([^ ()]+) ", pair.tree)}
    phrases = "TOP S SQ SBARQ SBAR NP NP-TMP VP PP ADVP ADJP WHNP WHADVP WHADJP PRT INTJ"
    tags = "DT JJ JJR RBR NN NNS NNP NNPS PRP PRP$ POS MD VB VBD VBG VBN VBP VBZ RB RP IN TO CD CC EX UH WP WDT WRB . ,"
    assert labels <= {*phrases.split(), *tags.split()}
    assert labels >= {"SQ", "SBARQ", "SBAR", "PRT", "WHNP", "WHADVP", "ADJP", "MD", "EX", "POS"}


def test_german_is_well_formed() -> None:
    nouns = {form for noun in WORDS.nouns.values() for number in noun.forms for form in number}
    names = {name for group in WORDS.names.values() for name in group} | set(WORDS.cities.values())
    time_nouns = set(re.findall(r"[A-ZÄÖÜ]\w+", " ".join(t.german for kind in WORDS.times.values() for t in kind)))
    for pair in training_pairs():
        assert re.fullmatch(r"[A-ZÄÖÜ][\w, ]+[.?!]", pair.de), pair
        assert not re.search(r",,|,[.?!]| ,|  ", pair.de), pair
        assert not re.search(r"\b(in dem|in das|an dem|an das|zu dem|zu der|von dem|bei dem)\b", pair.de), pair
        for word in re.findall(r"(?<=[\w,] )[A-ZÄÖÜ]\w+", pair.de):
            assert word in nouns | names | time_nouns or word.removesuffix("s") in names, (word, pair)


def test_articles_and_nouns_agree() -> None:
    genders = {form: noun.column for noun in WORDS.nouns.values() for form in noun.forms[0][:1]}
    allowed = {
        "ein": ("MASCULINE", "NEUTER"),
        "eine": ("FEMININE",),
        "einer": ("FEMININE",),
        "dieses": ("NEUTER",),
        "das": ("NEUTER",),
    }
    plurals = {form for noun in WORDS.nouns.values() for form in noun.forms[1]}
    n_checked = 0
    for pair in training_pairs():
        for article, noun in pairwise(re.findall(r"\w+|,", pair.de)):
            if article in allowed and noun in genders and noun not in plurals:
                n_checked += 1
                assert genders[noun].name in allowed[article], pair
    assert n_checked > 1_000
