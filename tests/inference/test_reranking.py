"""Reranking with a reverse model: its probabilities are those of its own search, and decide the order."""

from __future__ import annotations

import pytest
import torch

from said import naming
from small_models import sentences, untrained_translator
from transduce.config import SearchConfig
from transduce.errors import CheckpointError
from transduce.inference import Reranker, Translator, log_probabilities
from transduce.search import LengthPenalty
from transduce.text import BOS_ID, EOS_ID, train_bpe

SENTENCES = sentences(12, seed=3)


def untrained(direction: str, *, seed: int) -> Translator:
    """An untrained float64 translator whose vocabulary has only whole words."""
    search = SearchConfig(max_extra_tokens=4, n_best=4)
    return untrained_translator(train_bpe(SENTENCES, vocab_size=300), seed=seed, search=search, direction=direction)


@torch.no_grad()
def test_probabilities_are_those_of_each_symbol_in_turn() -> None:
    translator = untrained("en-de", seed=1)
    pairs = list(zip(SENTENCES, reversed(SENTENCES), strict=True))
    pairs += [("", "a dog"), ("a dog", "")]
    results = log_probabilities(translator, pairs)
    encode = translator.tokenizers.src.encode
    for (source, target), log_prob in zip(pairs, results, strict=True):
        state = translator.model.start(torch.tensor([[*encode(source), EOS_ID]]))
        last, expected = BOS_ID, 0.0
        for token in [*encode(target), EOS_ID]:
            logits, state = translator.model.step(torch.tensor([last]), state)
            expected += float(logits.log_softmax(-1)[0, token])
            last = token
        assert log_prob == pytest.approx(expected, abs=1e-9)
    assert log_probabilities(translator, []) == []


def test_the_best_of_both_directions_is_chosen() -> None:
    translator, reverse = untrained("en-de", seed=1), untrained("de-en", seed=2)
    penalty = LengthPenalty.of(translator.search)
    for weight in (0.0, 0.7, 1e6):
        chosen = list(Reranker(translator, reverse, weight=weight).translate_lines([*SENTENCES, ""]))
        assert chosen[-1].text == ""
        own_translations = list(translator.translate_lines(SENTENCES))
        assert sum("untranslated" in own.warnings for own in own_translations) < len(SENTENCES) / 2
        for ours, own in zip(chosen, own_translations, strict=False):
            if "untranslated" in own.warnings:
                continue  # the source stands for no hypothesis
            back = log_probabilities(reverse, [(best.text, own.source) for best in own.n_best], penalty=penalty)
            scored = [(best.score + weight * p, best.text) for best, p in zip(own.n_best, back, strict=True)]
            expected = sorted(scored, key=lambda each: each[0], reverse=True)
            assert [best.text for best in ours.n_best] == [text for _, text in expected]
            assert [best.score for best in ours.n_best] == pytest.approx([score for score, _ in expected], rel=1e-12)
    changed = Reranker(translator, reverse, weight=1e6).translate(SENTENCES)
    assert changed != translator.translate(SENTENCES)


def test_the_whole_beam_is_asked_even_for_one_translation() -> None:
    translator, reverse = untrained("en-de", seed=1), untrained("de-en", seed=2)
    search = translator.search.model_copy(update={"n_best": 1})
    reranker = Reranker(translator, reverse, weight=5.0)
    of_one, of_four = (list(reranker.translate_lines(SENTENCES, search=each)) for each in (search, translator.search))
    assert all(len(each.n_best) == 1 for each in of_one)
    assert [each.text for each in of_one] == [each.text for each in of_four]


def test_a_reverse_model_translates_back() -> None:
    translator = untrained("en-de", seed=1)
    with pytest.raises(CheckpointError, match=naming("en-de", "en-de", "de-en")):
        Reranker(translator, untrained("en-de", seed=2), weight=1.0)
