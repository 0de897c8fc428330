"""Figures 3 to 5: head statistics against plain loops, probes with planted heads, the short reports end to end."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from math import log
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from messages import naming, says
from transduce.corpora import generate_pairs
from transduce.errors import DataError
from transduce.inference import Translator
from transduce.model import Transformer
from transduce.text import EOS_ID, train_bpe, train_wordpiece
from transduce.trees import parse_tree
from transduce_paper import ARTEFACTS, Experiment, Experiments, Report, Request, Scale, Table, write_report
from transduce_paper.attention import figure4
from transduce_paper.attention.antecedents import Anaphor, find_anaphors
from transduce_paper.attention.dependencies import dependencies
from transduce_paper.attention.figure3 import distant_attention, most_distant_attention
from transduce_paper.attention.figure4 import Pronouns, pronoun_to_draw
from transduce_paper.attention.figure5 import heads_to_draw
from transduce_paper.attention.heads import (
    DISTANT,
    HeadResult,
    PositionBaseline,
    Probe,
    ProbeItem,
    are_many,
    best_head,
    head_numbers,
    head_result,
    head_statistics,
    most_frequent_offsets,
    strongest_other,
    uniform_attention,
    wilson,
)
from transduce_paper.attention.inputs import PAGE
from transduce_paper.attention.measurements import with_one_model
from transduce_paper.attention.models import attention_experiment
from transduce_paper.attention.sentences import DEFAULT_SENTENCE, GOVERNMENTS, LAW, OWN, drawn_sentence
from transduce_paper.attention.structure import (
    RelationResult,
    comparison_text,
    follows_relations,
    relation_probes,
    specialists,
)
from transduce_paper.attention.word_attention import (
    WordAttention,
    attention_between_words,
    lengths_of_words,
    merge_subwords,
    split_into_words,
    untrained,
)
from transduce_paper.run_records import RunRecord
from transduce_paper.table3.rows import row_at_scale

N_LAYERS, N_HEADS = 2, 3


def sample(n_words: int, *, seed: int) -> WordAttention:
    """Return random attention in a sentence of ``n_words`` words."""
    weights = np.random.default_rng(seed).random((N_LAYERS, N_HEADS, n_words + 1, n_words + 1)) ** 3
    words = (*(f"w{n}" for n in range(n_words)), "</s>")
    return WordAttention(words, (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32))


# Words from subwords


@pytest.mark.parametrize("train", [train_bpe, train_wordpiece])
def test_subwords_are_counted_per_word(train: Callable) -> None:
    tokenizer = train(["the quick brown fox", "Größe, naïveté; 日本語!"] * 3, vocab_size=600)
    for text in ("the quick fox.", "Größe—日本語, isn't it?", "x", "Donaudampfschifffahrt! !! 3.5"):
        ids, lengths = tokenizer.encode(text), lengths_of_words(tokenizer, text)
        assert sum(lengths) == len(ids)
        starts = np.cumsum([0, *lengths])
        words = [tokenizer.decode(ids[start:end]) for start, end in pairwise(starts)]
        for word in words:
            assert word
            assert " " not in word
        assert "".join(words) == text.replace(" ", "")
    assert lengths_of_words(tokenizer, "") == []


def test_attention_between_words_is_a_sum_over_keys_and_a_mean_over_queries() -> None:
    pieces = np.random.default_rng(1).random((2, 3, 6, 6)).astype(np.float32)
    groups = [[0], [1, 2, 3], [4], [5]]
    got = merge_subwords(pieces, np.array([len(group) for group in groups]))
    for query, rows in enumerate(groups):
        for key, columns in enumerate(groups):
            expected = np.mean([sum(pieces[:, :, row, column] for column in columns) for row in rows], axis=0)
            np.testing.assert_allclose(got[:, :, query, key], expected, rtol=1e-5)


def test_word_attention_matches_the_model_and_is_independent_of_the_batch(micro_model: Path) -> None:
    translator = Translator.load(micro_model)
    texts = ["The dogs sleep.", DEFAULT_SENTENCE, "  A\tteacher reads  the book. ", "Yes"]
    results = attention_between_words(translator, texts)
    assert results[2].words == ("A", "teacher", "reads", "the", "book", ".", "</s>")
    assert [each.n_words for each in results] == [4, 20, 6, 1]
    for text, each in zip(texts, results, strict=True):
        (alone,) = attention_between_words(translator, [text])
        np.testing.assert_allclose(each.weights, alone.weights, atol=1e-5)
        np.testing.assert_allclose(each.weights.sum(axis=-1), 1, atol=1e-5)
    # One sentence by hand: the EOS row, which is one subword, summed over the first word's subwords.
    assert isinstance(translator.model, Transformer)
    ids = [*translator.source_ids(texts[0]), EOS_ID]
    layers: list[torch.Tensor] = []
    translator.model.encode(torch.tensor([ids]), attention_hook=lambda kind, layer, weights: layers.append(weights[0]))
    lengths = lengths_of_words(translator.tokenizers.src, texts[0])
    by_hand = torch.stack(layers)[:, :, -1, : lengths[0]].sum(dim=-1).detach().numpy()
    np.testing.assert_allclose(results[0].weights[:, :, -1, 0], by_hand, atol=1e-5)


def test_untrained_model_has_fixed_initial_weights_and_keeps_the_rng_state(micro_model: Path) -> None:
    translator = Translator.load(micro_model)
    before = torch.random.get_rng_state()
    (initial,), (again,) = (attention_between_words(untrained(translator), [DEFAULT_SENTENCE]) for _ in range(2))
    (trained,) = attention_between_words(translator, [DEFAULT_SENTENCE])
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(initial.weights, again.weights)
    assert initial.weights.shape == trained.weights.shape
    assert not np.allclose(initial.weights, trained.weights, atol=1e-3)


# Head statistics


def attention_rows(
    samples: list[WordAttention], layer: int, head: int
) -> Iterator[tuple[WordAttention, int, np.ndarray]]:
    for each in samples:
        for word in range(each.n_words):
            yield each, word, each.weights[layer, head, word].astype(float)


def test_head_statistics_are_means_over_all_query_words() -> None:
    samples = [sample(3, seed=1), sample(9, seed=2), sample(1, seed=3)]
    numbers = head_statistics(samples)
    for layer in range(N_LAYERS):
        for head in range(N_HEADS):
            rows = list(attention_rows(samples, layer, head))

            def mean(of: Callable[[WordAttention, int, np.ndarray], float], rows: list = rows) -> float:
                return sum(of(*row) for row in rows) / len(rows)

            def mass_at(offset: int) -> Callable[[WordAttention, int, np.ndarray], float]:
                return lambda each, i, row: row[i + offset] if 0 <= i + offset < each.n_words else 0.0

            end = mean(lambda each, i, row: row[-1])
            expected = {
                "entropy_nats": mean(lambda each, i, row: -sum(w * log(w) for w in row if w > 0)),
                "distant_mass": mean(
                    lambda each, i, row: sum(row[j] for j in range(each.n_words) if abs(i - j) > DISTANT)
                ),
                "distance": mean(lambda each, i, row: sum(row[j] * abs(i - j) for j in range(each.n_words)))
                / (1 - end),
                "eos_mass": end,
                "self_mass": mean(mass_at(0)),
                "previous_mass": mean(mass_at(-1)),
                "next_mass": mean(mass_at(1)),
            }
            for name, value in expected.items():
                assert float(getattr(numbers, name)[layer, head]) == pytest.approx(value, rel=1e-5), name


def test_uniform_attention_has_maximum_entropy() -> None:
    samples = [sample(5, seed=1), sample(9, seed=2)]
    alike = head_statistics(uniform_attention(samples))
    assert alike.entropy_nats.shape == (1, 1)
    assert float(alike.entropy_nats[0, 0]) == pytest.approx((5 * log(6) + 9 * log(10)) / 14, rel=1e-6)
    assert (head_statistics(samples).entropy_nats < alike.entropy_nats).all()


def test_strongest_other_excludes_the_word_itself_and_eos() -> None:
    each = sample(7, seed=4)
    chosen = strongest_other(each)
    assert chosen.shape == (N_LAYERS, N_HEADS, 7)
    for (layer, head, word), answer in np.ndenumerate(chosen):
        row = each.weights[layer, head, word]
        assert answer == max((other for other in range(7) if other != word), key=row.__getitem__)
    assert strongest_other(sample(1, seed=1)).tolist() == [[[-1]] * N_HEADS] * N_LAYERS


def test_most_frequent_offsets_find_heads_with_a_fixed_offset() -> None:
    words = np.arange(8)
    chosen = np.stack([words - 1, words + 2, np.array([5, 5, 5, 5, 5, 1, 1, 1])])[None]
    offsets, shares = most_frequent_offsets([chosen, chosen[:, :, :3]])
    assert offsets[0, :2].tolist() == [-1, 2]
    assert shares[0, :2].tolist() == [1, 1]
    assert shares[0, 2] < 0.4


# Probes


def planted(n_sentences: int, *, seed: int) -> Probe:
    """Return a probe: head (1, 2) is right in 90 % of items, head (0, 0) answers the next word, the others guess."""
    random = np.random.default_rng(seed)
    chosen, items = [], []
    for sentence in range(n_sentences):
        answers = random.permutation(10)
        guesses = random.integers(0, 10, size=(N_LAYERS, N_HEADS, 10))
        guesses[1, 2] = np.where(random.random(10) < 0.9, answers, guesses[1, 2])
        guesses[0, 0] = np.arange(10) + 1
        chosen.append(guesses)
        items += [ProbeItem(sentence, word, (int(answers[word]),)) for word in range(10)]
    return Probe(chosen, items)


def test_best_head_is_chosen_on_dev_and_measured_on_test() -> None:
    dev, test = planted(30, seed=1), planted(30, seed=2)
    result = best_head(dev, test)
    assert (result.layer, result.head, result.n_items) == (1, 2, 300)
    assert result.accuracy == pytest.approx(0.91, abs=0.04)
    assert result.low < result.accuracy < result.high
    assert result.accuracy == test.accuracies()[1, 2] != dev.accuracies()[1, 2]
    assert result.baseline_accuracy < 0.25
    assert result.beats_baseline


def test_a_next_word_head_does_not_beat_the_offset_baseline() -> None:
    probe = planted(20, seed=3)
    next_word = Probe(probe.answers, [ProbeItem(item.sentence, item.word, (item.word + 1,)) for item in probe.items])
    result = best_head(next_word, next_word)
    assert (result.layer, result.head, result.accuracy) == (0, 0, 1.0)
    assert (result.baseline, result.baseline_accuracy) == (PositionBaseline("offset", 1), 1.0)
    assert not result.beats_baseline


@pytest.mark.parametrize(
    ("accuracy", "n", "baseline", "beats"), [(160 / 233, 233, 95 / 233, True), (18 / 33, 33, 11 / 33, False)]
)
def test_the_error_of_the_baseline_counts_too(accuracy: float, n: int, baseline: float, beats: bool) -> None:
    """Of the second, the interval of the head alone, 38 to 70 %, would exclude the baseline's 33 %."""
    result = HeadResult(0, 0, n, accuracy, *wilson(accuracy, n), PositionBaseline("offset", 1), baseline)
    assert result.low > baseline
    assert result.beats_baseline is beats


def test_head_result_measures_the_given_head() -> None:
    dev, test = planted(20, seed=4), planted(20, seed=5)
    result = head_result((0, 1), dev, test)
    assert (result.layer, result.head) == (0, 1)
    assert result.accuracy == test.accuracies()[0, 1] < 0.3


@pytest.mark.parametrize(("n", "of", "expected"), [(12, 48, True), (11, 48, None), (1, 48, None), (0, 48, False)])
def test_many_is_a_quarter(n: int, of: int, expected: bool | None) -> None:
    assert are_many(n, of) is expected


def test_head_numbers_are_the_statistics_of_each_head() -> None:
    samples = [sample(5, seed=1), sample(9, seed=2)]
    *heads, uniform = head_numbers(samples)
    statistics = head_statistics(samples)
    offsets, shares = most_frequent_offsets([strongest_other(each) for each in samples])
    assert [(each.layer, each.head) for each in heads] == [(n // N_HEADS, n % N_HEADS) for n in range(6)]
    for each in heads:
        index = (each.layer, each.head)
        assert each.entropy_nats == statistics.entropy_nats[index]
        assert each.distant_mass == statistics.distant_mass[index]
        assert (each.offset, each.offset_share) == (offsets[index], shares[index])
    assert (uniform.layer, uniform.head, uniform.n_sentences) == (None, None, 2)
    assert uniform.entropy_nats == pytest.approx((5 * log(6) + 9 * log(10)) / 14, rel=1e-6)


def two_relations() -> dict[str, tuple[Probe, Probe]]:
    """Probes of two relations: head (0, 0) knows the first, head (1, 2) the second, the others guess."""

    def probe(knower: tuple[int, int], seed: int) -> Probe:
        each = planted(30, seed=seed)
        answers = []
        for sentence, given in enumerate(each.answers):
            correct = [item.targets[0] for item in each.items if item.sentence == sentence]
            answers.append(np.random.default_rng(seed + sentence).integers(0, 10, size=given.shape))
            answers[-1][knower] = correct
        return Probe(answers, each.items)

    return {
        "a → b": (probe((0, 0), 1), probe((0, 0), 2)),
        "c → d": (probe((1, 2), 3), probe((1, 2), 4)),
    }


def test_specialists_are_better_than_each_other() -> None:
    probes = two_relations()
    relations = [RelationResult(name, best_head(*each), best_head(*each)) for name, each in probes.items()]
    untaught = HeadResult(0, 1, 300, 0.1, 0.07, 0.14, PositionBaseline("offset", 1), 0.1)
    relations = [RelationResult(each.name, each.trained, untaught) for each in relations]
    one, two = specialists(probes, relations)
    assert [(each.name, each.own.layer, each.own.head) for each in (one, two)] == [("a → b", 0, 0), ("c → d", 1, 2)]
    assert one.own.accuracy == two.own.accuracy == 1
    assert max(one.other.accuracy, two.other.accuracy) < 0.2
    assert one.is_better
    assert two.is_better
    # The untrained model knows it as well: nothing was learned.
    (alike, _) = specialists(probes, [RelationResult(each.name, each.trained, each.trained) for each in relations])
    assert not alike.is_better
    assert specialists(probes, relations[:1]) == ()


@pytest.mark.parametrize(
    ("n_better", "n_alike", "n_short", "expected"),
    [(0, 0, 0, None), (0, 0, 26, False), (0, 1, 25, None), (0, 26, 0, None), (1, 0, 25, None), (2, 24, 0, True)],
)
def test_relations_beyond_chance(n_better: int, n_alike: int, n_short: int, expected: bool | None) -> None:
    alike = HeadResult(0, 1, 300, 0.1, 0.07, 0.14, PositionBaseline("offset", 1), 0.1)
    better = HeadResult(0, 1, 300, 0.5, 0.45, 0.55, PositionBaseline("offset", 1), 0.1)
    short = replace(alike, baseline_accuracy=0.3)
    heads = [better] * n_better + [alike] * n_alike + [short] * n_short
    assert follows_relations([RelationResult(f"{i}", head, alike) for i, head in enumerate(heads)]) is expected


def test_any_target_of_a_probe_item_counts_as_correct() -> None:
    probe = Probe([np.array([[[2, 0, 1]]])], [ProbeItem(0, 0, (1, 2)), ProbeItem(0, 1, (2,)), ProbeItem(0, 2, (0, 1))])
    assert probe.accuracies().tolist() == [[pytest.approx(2 / 3)]]


@pytest.mark.parametrize(
    ("baseline", "answers", "words"),
    [
        (PositionBaseline("offset", -1), [-1, 0, 1], "next word before"),
        (PositionBaseline("offset", 2), [2, 3, 4], "2 words after"),
        (PositionBaseline("position", 0), [0, 0, 0], "word 1"),
        (PositionBaseline("position", -2), [1, 1, 1], "word 2 from the end"),
        (PositionBaseline("position", 5), [-1, -1, -1], "word 6"),
    ],
)
def test_position_baselines(baseline: PositionBaseline, answers: list[int], words: str) -> None:
    assert [baseline.answer(word, 3) for word in range(3)] == answers
    assert str(baseline) == words


def test_wilson_interval_matches_published_values() -> None:
    # Newcombe (1998), table I, method 3
    for hits, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        assert wilson(hits / n, n) == pytest.approx((low, high), abs=1e-4)


# Dependencies


def test_dependencies_of_a_sentence() -> None:
    tree = parse_tree(
        "(TOP (S (NP (NP (DT The) (JJ brave) (NN aunt)) (SBAR (WHNP (WP who)) (S (VP (VBD hid)"
        " (NP (NP (NNP Anna) (POS 's)) (NN cake)))))) (VP (MD will) (RB not) (VP (VB put) (PRT (RP on))"
        " (NP (NP (PRP$ her) (NN coat)) (CC and) (NP (NNS boots))) (PP (IN in) (NP (DT the) (NN garden))))) (. .)))"
    )
    words = [str(leaf.word) for leaf in tree.leaves()]
    relations = {(words[each.dependent], words[each.governor]): each.relation for each in dependencies(tree)}
    assert relations == {
        ("The", "aunt"): "determiner",
        ("brave", "aunt"): "adjective",
        ("who", "hid"): "subordinator",
        ("Anna", "cake"): "possessor",
        ("cake", "hid"): "object",
        ("hid", "aunt"): "relative clause",
        ("on", "put"): "particle",
        ("her", "coat"): "determiner",
        ("boots", "coat"): "second noun",
        ("coat", "put"): "object",
        ("the", "garden"): "determiner",
        ("garden", "in"): "noun",
        ("in", "put"): "adverbial",
        ("will", "put"): "auxiliary",
        ("not", "put"): "adverbial",
        ("aunt", "put"): "subject",
    }


def test_dependencies_of_the_grammar_are_acyclic_with_one_governor_per_word() -> None:
    n_words = n_edges = 0
    for pair in generate_pairs("train", n_pairs=500, seed=5):
        tree = parse_tree(pair.tree)
        leaves, edges = list(tree.leaves()), dependencies(tree)
        governor = {each.dependent: each.governor for each in edges}
        assert len(governor) == len(edges)
        for word in governor:
            seen = [word]
            while (word := governor.get(word, -1)) >= 0:
                assert word not in seen
                seen.append(word)
        for each in edges:
            if each.relation in ("determiner", "adjective") and leaves[each.governor].label != "WP":
                assert each.dependent < each.governor
            if each.relation in ("auxiliary", "particle"):
                assert leaves[each.governor].label.startswith("V")
        n_words += sum(leaf.label not in (",", ".") for leaf in leaves)
        n_edges += len(edges)
    assert n_edges > 0.83 * n_words  # all but heads of sentences, conjunctions and a few others


def test_relation_probes_cover_both_directions_and_respect_farther_than() -> None:
    tree = parse_tree("(S (NP (DT the) (JJ old) (JJ red) (NN car)) (VP (VBZ is) (ADJP (JJ fast))))")
    items = relation_probes([tree])
    assert items["adjective → noun"] == [ProbeItem(0, 1, (3,)), ProbeItem(0, 2, (3,))]
    assert items["noun → adjective"] == [ProbeItem(0, 3, (1, 2))]
    assert relation_probes([tree], farther_than=2) == {
        "determiner → noun": [ProbeItem(0, 0, (3,))],
        "noun → determiner": [ProbeItem(0, 3, (0,))],
    }


# Pronouns


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("A man in a hat is painting his house .", [(7, (1,))]),
        ("The man gives the boy his ball .", [(5, (1, 4))]),
        ("A Woman looks at the boys ; they look at her .", [(7, (5,)), (10, (1,))]),
        ("His dog runs .", [(0, ())]),
        ("A dog wags its tail at a woman .", [(3, (1,))]),
        ("A truck with its lights on .", [(3, ())]),
        ("It rains on a man .", []),
    ],
)
def test_pronouns_agree_with_earlier_nouns(sentence: str, expected: list) -> None:
    assert [(each.pronoun, each.nouns) for each in find_anaphors(sentence.split())] == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("He sees the woman and her dog .", Anaphor(5, (3,))),
        ("Here he is .", Anaphor(1, ())),
        ("The law is right but its use is not .", Anaphor(5, ())),
        ("He runs .", None),
        ("Two dogs run .", None),
    ],
)
def test_pronoun_to_draw(sentence: str, expected: Anaphor | None) -> None:
    assert pronoun_to_draw(sentence.split()) == expected


def test_noun_mass_separates_the_pronoun_from_other_words() -> None:
    words = ("A", "man", "paints", "his", "house", ".", "</s>")
    weights = np.full((1, 2, 7, 7), 0.1, dtype=np.float32)
    weights[0, :, :, 6] = 0.4
    weights[0, 0, 3] = [0, 0.9, 0, 0.1, 0, 0, 0]  # the pronoun attends to the noun
    weights[0, 1, 2:6] = [0, 0.7, 0, 0.3, 0, 0, 0]  # here all words do
    pronouns = Pronouns([WordAttention(words, weights)], [(0, Anaphor(3, (1,)))])
    from_pronoun, from_others = pronouns.noun_mass()
    np.testing.assert_allclose(from_pronoun, [[0.9, 0.7]], rtol=1e-5)
    np.testing.assert_allclose(from_others, [[0.1, 0.7]], rtol=1e-5)
    assert pronouns.probe().accuracies().tolist() == [[1, 1]]


# What is drawn


def test_most_distant_attention_ignores_punctuation_and_eos() -> None:
    words = ("Dogs", ",", "which", "the", "man", "fed", ".", "</s>")
    weights = np.full((2, 3, 8, 8), 0.01, dtype=np.float32)
    weights[0, :, 1, 6] = 0.95  # punctuation does not count
    weights[0, :, 0, 7] = 0.9  # nor does EOS
    weights[0, :, 5, 3] = 0.9  # nor do near words
    weights[1, 0, 5, 0], weights[1, 2, 5, 0] = 0.6, 0.5
    distant = most_distant_attention(WordAttention(words, weights))
    assert distant is not None
    assert (distant.layer, distant.query) == (1, 5)
    assert distant.keys[[0, 2]].tolist() == [0, 0]
    np.testing.assert_allclose(distant.weights, [0.6, 0.01, 0.5], rtol=1e-5)
    assert most_distant_attention(sample(4, seed=1)) is None
    distant = most_distant_attention(sample(5, seed=1))
    assert distant is not None
    assert {distant.query, *distant.keys.tolist()} == {0, 4}  # of five words only the first and the last are far apart


def test_distant_attention_of_a_given_query() -> None:
    each = sample(7, seed=3)
    distant = distant_attention(each, 1, 5)
    assert (distant.layer, distant.query) == (1, 5)
    rows = each.weights[1, :, 5, :2]  # the only words more than three before; none is so far after
    assert distant.keys.tolist() == rows.argmax(axis=-1).tolist()
    np.testing.assert_array_equal(distant.weights, rows.max(axis=-1))


def test_heads_to_draw_differ_in_head_and_relation() -> None:
    def result(name: str, layer: int, head: int) -> RelationResult:
        each = HeadResult(layer, head, 50, 0.9, 0.8, 0.95, PositionBaseline("offset", 1), 0.5)
        return RelationResult(name, each, each)

    results = [
        result("a → b", 0, 1), result("b → a", 1, 1), result("c → d", 0, 1), result("e → f", 1, 0),
        result("g → h", 1, 2),
    ]  # fmt: skip
    assert [each.name for each in heads_to_draw(results)] == ["a → b", "e → f"]
    assert heads_to_draw([]) == []


def test_attention_experiment_at_each_scale(tmp_path: Path) -> None:
    def at_scale(scale: Scale) -> Experiment:
        return attention_experiment(Experiments(tmp_path, tmp_path, scale=scale))

    config = at_scale("cpu").config
    model, training = config.model, config.training
    assert (model.n_encoder_layers, model.n_decoder_layers) == (6, 6)
    assert (model.d_model, model.d_ff, model.n_heads, model.d_k, model.norm) == (256, 512, 8, 32, "pre")
    assert (training.max_updates, training.max_tokens_per_batch) == (5500, 2048)
    assert (training.optimiser, training.precision, training.decay) == ("muon", "bf16", "linear")
    assert config.data.weights.keys() == {"multi30k", "tatoeba"}
    for scale in ("gpu", "paper"):  # the same run as Table 3
        assert at_scale(scale).config == row_at_scale("base", scale)
        assert at_scale(scale).name == "table3-base-seed1"


def test_comparison_text_has_accuracy_interval_and_baseline() -> None:
    each = HeadResult(2, 0, 68, 0.2206, 0.14, 0.33, PositionBaseline("offset", -5), 0.19)
    assert comparison_text(RelationResult("relative clause → noun", each, each)) == (
        "relative clause → noun, layer 3, head 1: 22 % (95 % interval 14 to 33) against 19 % for “5 words before”"
    )


# Short reports, end to end


@pytest.fixture(scope="module")
def experiments(tmp_path_factory: pytest.TempPathFactory) -> Experiments:
    folder = tmp_path_factory.mktemp("experiments")
    return Experiments(folder / "runs", folder / "work", scale="test")


def made(experiments: Experiments, name: str, sentence: str | None = None) -> Report:
    return ARTEFACTS[name](experiments, Request(sentence=sentence))


FIGURES = ("figure3", "figure4", "figure5")


@pytest.mark.parametrize("name", FIGURES)
def test_short_report_has_drawings_and_a_page(experiments: Experiments, name: str, tmp_path: Path) -> None:
    report = made(experiments, name)
    paths = write_report(report, tmp_path)
    assert list(report.drawings) == [f"{name}-papers-sentence", name, f"{name}-all-heads"]
    text = paths[0].read_text(encoding="utf-8")
    of_paper, word = (GOVERNMENTS, "registration") if name == "figure3" else (LAW, "application")
    assert DEFAULT_SENTENCE in text
    assert of_paper.text in text
    assert str(tmp_path) not in text
    verdict = text.split("\n\n")[1]
    assert verdict.startswith("**")
    assert verdict.endswith(".**")
    assert f"Figure {name[-1]}" in verdict or "Undecided" in verdict
    for drawing in report.drawings:
        assert text.count(f"]({drawing}.svg)") == 1
        assert drawing.endswith("all-heads") or text.index(f"]({drawing}.svg)") < text.index("How it was measured")
        assert not re.search(rf"!\[({drawing})?\]", text), "a description for readers who do not see the drawing"
        words = [element.text for element in ElementTree.parse(tmp_path / f"{drawing}.svg").iter() if element.text]
        shown = word if drawing.endswith("sentence") else "throwing"
        assert drawing.endswith("all-heads") or words.count(shown) in (2, 4)  # each side of a panel
    assert f"]({PAGE})" in text
    columns = report.table("-paper").columns
    assert re.search(r"^ours.*\b2 \+ 1 layers, d_model 32\b", columns[2])
    page = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert "attention-data" in page
    tables = [section for section in report.blocks() if isinstance(section, Table)]
    assert tables
    assert all(table.rows for table in tables)
    again = write_report(made(experiments, name), tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]


@pytest.mark.parametrize("name", FIGURES)
def test_report_needs_neither_model_nor_text(experiments: Experiments, name: str, tmp_path: Path) -> None:
    """Records and arrays are enough for the same files."""
    paths = write_report(made(experiments, name), tmp_path / "out")
    shutil.copytree(experiments.records, tmp_path / "runs")
    alone = Experiments(tmp_path / "runs", tmp_path / "work", scale="test", data_folder=tmp_path / "no-data")
    again = write_report(made(alone, name), tmp_path / "again")
    assert [path.name for path in again] == [path.name for path in paths]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]
    assert not (tmp_path / "work").exists()


def test_a_sentence_of_the_user_needs_the_model(experiments: Experiments, tmp_path: Path) -> None:
    made(experiments, "figure5")
    shutil.copytree(experiments.records, tmp_path / "runs")
    log: list[str] = []
    alone = Experiments(tmp_path / "runs", tmp_path / "work", scale="test", log=log.append)
    report = made(alone, "figure5", "The old dog sleeps in the garden.")
    assert any(says(line, "attention-6", "model") for line in log)  # trained again
    assert (tmp_path / "work" / "test" / "attention-6" / "model").exists()
    assert list(report.drawings) == ["figure5-papers-sentence", "figure5", "figure5-all-heads"]


def test_the_paper_column_has_only_words_of_the_captions(experiments: Experiments) -> None:
    printed = {
        "figure3": ["5 of 6", "making", "“making...more difficult”", *["“many of the attention heads”"] * 2],
        "figure4": ["5 and 6 of layer 5 of 6", "its", None, "“very sharp”", None],
        "figure5": ["two of layer 5 of 6", None, None],
    }
    for name, cells in printed.items():
        table = made(experiments, name).table("-paper")
        assert table.column(table.columns[1]) == cells


@pytest.fixture
def trained_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the model count as converged, which the short run is not."""
    monkeypatch.setattr(RunRecord, "is_trained_to_the_end", True)


def test_a_short_run_only_shows_what_it_has_learnt(experiments: Experiments) -> None:
    claims = [claim for name in FIGURES for claim in made(experiments, name).claims]
    of_tasks = [claim for claim in claims if "different tasks" in claim.sentence]
    assert len(of_tasks) == 1
    assert {claim.verdict for claim in claims if claim not in of_tasks} == {"not trained to the end"}


@pytest.mark.usefixtures("trained_to_the_end")
def test_claims_are_sentences_of_captions_and_of_section_4(experiments: Experiments) -> None:
    claims = [claim for name in FIGURES for claim in made(experiments, name).claims]
    assert [claim.where for claim in claims] == ["Figure 3"] * 2 + ["Figure 4"] * 2 + ["Figure 5, section 4"] * 2
    assert len({claim.sentence for claim in claims}) == len(claims)
    assert all(claim.found.endswith(".") for claim in claims)
    making = next(claim for claim in claims if "making" in claim.sentence)
    table = made(experiments, "figure3").table("-making")
    n_strong = sum(weight >= 0.25 for weight in table.column("on both"))
    assert f"{n_strong} of 4 heads of layer 1 " in making.found
    assert making.verdict == {True: "agrees", None: "cannot tell", False: "does not"}[are_many(n_strong, 4)]


def test_the_page_has_every_drawn_sentence(experiments: Experiments) -> None:
    pages = {made(experiments, name).pages[PAGE] for name in FIGURES}
    assert len(pages) == 1
    assert all(sentence.text in pages.copy().pop() for sentence in (OWN, GOVERNMENTS, LAW))
    with_dogs = made(experiments, "figure5", "Two dogs run.").pages[PAGE]
    assert "Two dogs run." in with_dogs
    assert DEFAULT_SENTENCE not in with_dogs


def test_cached_weights_are_those_of_the_model(experiments: Experiments, tmp_path: Path) -> None:
    experiment = attention_experiment(experiments)
    made(experiments, "figure3")
    translator = Translator.load(experiments.model_folder(experiment))
    for sentence in (OWN, GOVERNMENTS, LAW):
        drawn = drawn_sentence(experiments, experiment, sentence)
        (direct,) = attention_between_words(translator, [sentence.text])
        assert drawn.text == sentence.text
        assert drawn.words.words == direct.words
        np.testing.assert_allclose(drawn.words.weights, direct.weights, atol=2e-3)  # half precision
        assert drawn.words.words == (*split_into_words(translator, sentence.text)[0], "</s>")
        assert drawn.maps.tgt_predicted[-1] == "</s>"
        assert len(drawn.maps.tgt_tokens) <= 60
    sizes = {path.name: path.stat().st_size for path in experiments.records.rglob("*.npy")}
    assert len(sizes) == 9  # three sentences, three kinds of attention
    for of_paper in ("governments", "law"):  # a figure has its own sentence and one of the paper's
        assert 0 < sum(size for name, size in sizes.items() if of_paper in name or "woman" in name) < 1_000_000


@pytest.mark.parametrize(
    ("what", "values"),
    [
        ("sentence-law", {"words": ["a"]}),
        ("sentence-law", {"n_subwords": "many"}),
        ("sentence-law", {"src_tokens": ["a"]}),
        ("heads", [{"layer": 1}]),
        ("structure", [{"relations": 3}]),
    ],
)
def test_damaged_caches_are_named(experiments: Experiments, tmp_path: Path, what: str, values: Any) -> None:
    made(experiments, "figure5")
    shutil.copytree(experiments.records, tmp_path / "runs")
    path = tmp_path / "runs" / "test" / f"attention-6.{what}.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(values, dict):
        content["values"].update(values)
    else:
        content[what] = values
    path.write_text(json.dumps(content), encoding="utf-8")
    damaged = Experiments(tmp_path / "runs", tmp_path / "work", scale="test")
    with pytest.raises(DataError, match=naming(f"attention-6.{what}.json")):
        made(damaged, "figure5")


def test_everything_is_collected_again_if_the_model_changes_meanwhile() -> None:
    class Changing:
        weights: ClassVar[list[str]] = ["old", "new", "new", "new"]

        def run(self, experiment: object) -> Any:
            return SimpleNamespace(weights_sha256=self.weights.pop(0))

    collected: list[int] = []

    def collect() -> int:
        collected.append(len(collected))
        return len(collected)

    assert with_one_model(Changing(), None, collect) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "sentence", "expected_text"),
    [
        ("figure3", "Two dogs run.", r"“Two dogs run\.”.*\b3\b"),
        ("figure4", "Two dogs run.", r"“Two dogs run\.”.*\bpronoun\b"),
        ("figure4", "He runs.", r"“He runs\.”.*\bpronoun\b"),
        ("figure5", "Go!", r"“Go!”.*\brelations\b.*\bnot drawn\b"),
    ],
)
def test_report_says_when_nothing_can_be_drawn(
    experiments: Experiments, name: str, sentence: str, expected_text: str
) -> None:
    report = made(experiments, name, sentence)
    assert list(report.drawings) == [f"{name}-papers-sentence", f"{name}-all-heads"]
    assert any(re.search(expected_text, section) for section in report.blocks() if isinstance(section, str))


@pytest.mark.usefixtures("trained_to_the_end")
def test_figure_4_measures_heads_if_there_are_enough_pronouns(
    experiments: Experiments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure4, "MIN_PRONOUNS", 1)
    report = made(experiments, "figure4")
    (share,) = report.table("-share").rows
    heads = report.table("-heads")
    assert len(heads.rows) == 5
    assert share[0] == "pronoun → noun"
    assert share[1] >= 1
    drawn = "; ".join(f"layer {layer}, head {head}" for layer, head, *_ in heads.rows[:2])
    for cell in report.table("-paper").rows[0][2:]:  # the same heads in both sentences
        assert cell == f"{drawn} (of 2 layers)"
    resolved, sharp = report.claims
    assert resolved.verdict == ("agrees" if share[-1] == "yes" else "does not")
    greatest = [float(weight) for weight in str(report.table("-paper").rows[3][2]).split("; ")]
    verdicts = {(True, True): "agrees", (False, False): "does not"}
    assert sharp.verdict == verdicts.get(tuple(weight >= 0.5 for weight in greatest), "cannot tell")


def test_a_pronoun_without_agreeing_noun_is_drawn_and_reported(experiments: Experiments) -> None:
    report = made(experiments, "figure4", "The law is right, but its use is not.")
    assert "figure4" in report.drawings
    assert any(re.search(r"\bnoun\b.*\bagrees\b", str(section)) for section in report.blocks())


def test_sentences_that_cannot_be_drawn_are_refused(experiments: Experiments) -> None:
    with pytest.raises(DataError, match=naming(60, 61)):
        made(experiments, "figure3", "word " * 61)
    with pytest.raises(DataError, match=naming("no word")):
        made(experiments, "figure5", " ")
