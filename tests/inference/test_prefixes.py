"""Translations that begin as told: forced prefixes, alternatives, and the alignment of words by attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from said import naming
from small_models import untrained_translator
from transduce.config import GreedySearchConfig, ModelConfig, SearchConfig
from transduce.errors import ConfigError, DataError
from transduce.inference import Reranker, Translator, reliability_of_tokens
from transduce.inference.translation.forced_scores import forced_scores, log_probabilities
from transduce.inference.translation.hypotheses import Candidate, Fault
from transduce.inference.translation.segment_text import SegmentText
from transduce.inference.translation.translator import Prefix, ScoredText
from transduce.inference.translation.word_alignment import OF_NOBODY, align_words
from transduce.model import Transformer, make_model
from transduce.text import Tokenizer, Tokenizers, byte_tokenizer, train_bpe, train_wordpiece, word_spans

SENTENCES = ["the old dog sees a cat", "a woman does not sleep", "der alte Hund sieht die Katze nicht", "eine Frau"]


def made(tokenizer: Tokenizer, **options: Any) -> Translator:
    """An untrained translator in float64."""
    return untrained_translator(tokenizer, seed=2, search=SearchConfig(max_extra_tokens=6), **options)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return made(TOKENIZERS["bpe"]())


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "bpe": cache(lambda: train_bpe(SENTENCES * 3, vocab_size=320)),
    "bytes": byte_tokenizer,
    "wordpiece": cache(lambda: train_wordpiece(SENTENCES * 3, vocab_size=560)),
}


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("search", [SearchConfig(max_extra_tokens=6), GreedySearchConfig(max_extra_tokens=6)])
def test_translations_begin_with_the_prefix(kind: str, search: SearchConfig) -> None:
    translator = made(TOKENIZERS[kind]())
    prefixes = ["der", "die Ka", "", "eine Frau ", "süß 東"]
    texts = ["the old dog", "a cat", "a woman", "a woman sees", "the cat"]
    results = translator.translate(texts, prefix=prefixes, search=search)
    for prefix, result in zip(prefixes, results, strict=True):
        assert result.startswith(prefix.strip())
    assert results[2] == translator.translate(["a woman"], search=search)[0]
    after = results[3][len("eine Frau") :]
    assert after == "" or after.startswith(" ")  # a space after the prefix ends its word
    alone = [
        translator.translate([text], prefix=prefix, search=search)[0]
        for text, prefix in zip(texts, prefixes, strict=True)
    ]
    assert alone == results
    assert translator.translate(texts, prefix="der ", search=search)[0].startswith("der")


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_no_text_is_twice_in_an_n_best_list(kind: str) -> None:
    """An untrained model writes many different tokens that give the same text, such as bytes that are no characters."""
    translator = made(TOKENIZERS[kind]())
    texts = ["the old dog", "a cat", "", "a woman. The old dog does not sleep. Eine Frau."]
    for n_best in (4, 12):
        for best in translator.translate(texts, n_best=n_best):
            assert 1 <= len(best) <= n_best
            assert len(set(best)) == len(best)
    lines = list(translator.translate_lines(texts, search=SearchConfig(max_extra_tokens=6, beam_size=12, n_best=12)))
    for line in lines:
        assert [each.score for each in line.n_best] == sorted((each.score for each in line.n_best), reverse=True)
        assert len({each.text for each in line.n_best}) == len(line.n_best)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_scores_include_the_prefix(translator: Translator, beam_size: int) -> None:
    """The score of a translation that is given as a whole is its log-probability."""
    search = SearchConfig(alpha=0.0, beam_size=beam_size)
    pairs = [("the old dog", "der alte Hund"), ("a cat", "eine Frau"), ("a woman", "die Katze sieht")]
    segments = translator.translate_segments(
        [source for source, _ in pairs], search, prefixes=[Prefix(target, is_whole=True) for _, target in pairs]
    )
    assert segments is not None
    assert [each.n_best[0].text for each in segments] == [target for _, target in pairs]
    expected = log_probabilities(translator, pairs)
    assert [each.n_best[0].score for each in segments] == pytest.approx(expected, abs=1e-9)


def test_the_sentences_of_a_prefix_belong_to_those_of_the_text(translator: Translator) -> None:
    text = "The dog sees a cat.  A woman does not sleep. The old dog."
    first, second, third = (each.text for each in translator.split_line(text))
    [result] = translator.translate([text], prefix="Der Hund. Eine Fr")
    assert result.startswith("Der Hund.  Eine Fr")
    tail = translator.translate([third])[0]
    middle = translator.translate([second], prefix="Eine Fr")[0]
    assert result == f"Der Hund.  {middle} {tail}".rstrip()
    assert first == "The dog sees a cat."
    whole = translator.translate([text], prefix="Der Hund. Eine Fr", split=False)[0]
    assert whole.startswith("Der Hund. Eine Fr")


def test_alternatives_differ_from_the_prefix_on(translator: Translator) -> None:
    found = translator.alternatives("the old dog", prefix="der ", n=5)
    assert 1 < len(found) <= 5
    texts = [each.text for each in found]
    assert len(set(texts)) == len(texts)
    assert all(text.startswith("der") for text in texts)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    first = [translator.tokenizers.tgt.encode(text)[:1] for text in texts]
    assert len(first) == len(texts)
    [best] = translator.translate_segments(
        ["the old dog"], translator.search, prefixes=[Prefix("der ")], is_checked=False
    ) or [None]
    assert best is not None
    assert best.n_best[0].text in texts
    assert translator.alternatives("", n=3) == []


def test_equal_alternatives_stand_where_the_best_does(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = made(byte_tokenizer())
    made_of = [ScoredText("x", -1.0), ScoredText("y", -2.0), ScoredText("x", -3.0)]
    candidates = [[Candidate(each, Fault.NONE, is_repaired=False, is_finished=True)] for each in made_of]
    monkeypatch.setattr(SegmentText, "candidates", lambda *_, **__: candidates)
    assert translator.alternatives("the old dog", n=3) == made_of[:2]


def test_masked_text_may_stand_in_a_prefix() -> None:
    tokenizer = train_bpe(SENTENCES * 3, vocab_size=340, masks=True)
    assert tokenizer.has_masks
    [result] = made(tokenizer).translate(["see https://a.org and x.txt"], prefix="siehe https://a.org")
    assert result.startswith("siehe https://a.org")
    assert result.count("https://a.org") == 1
    assert result.count("x.txt") == 1


def test_a_prefix_counts_for_the_greatest_length(translator: Translator) -> None:
    n = len(translator.tokenizers.tgt.encode("der alte"))
    for search in (SearchConfig(max_length=n + 2), GreedySearchConfig(max_length=n + 2)):
        [line] = translator.translate_segments(["the old dog"], search, prefixes=[Prefix("der alte")]) or [None]
        assert line is not None
        assert n <= len(translator.tokenizers.tgt.encode(line.n_best[0].text)) <= n + 2
    with pytest.raises(DataError, match=naming("max_length", n, n + 1, "der alte")):
        translator.translate(["the old dog"], prefix="der alte", max_length=n)
    with pytest.raises(DataError, match=naming("max_length", n, n + 1, "der alte")):
        translator.alternatives("the old dog", prefix="der alte", search=SearchConfig(max_length=n))


def test_prefixes_that_cannot_be_used_are_refused(translator: Translator) -> None:
    with pytest.raises(ConfigError, match=naming(2, 1)):
        translator.translate(["a"], prefix=["b", "c"])
    with pytest.raises(ConfigError, match=naming("1 prefixes", "lines")):
        list(translator.translate_lines(["a cat", "a dog"], prefixes=["b"]))
    with pytest.raises(TypeError, match=r"prefix\[0\]"):
        translator.translate(["a"], prefix=[1])  # type: ignore[list-item]
    with pytest.raises(DataError, match=naming("prefix", "1,023")):
        translator.translate(["a"], prefix="der " * 2000)
    reverse = made(translator.tokenizers.tgt, direction="de-en")
    reranker = Reranker(translator, reverse, weight=0.3)
    with pytest.raises(ConfigError, match=naming("prefix", "reranking")):
        list(reranker.translate_lines(["a cat"], prefixes=["b"]))


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(st.text(max_size=40))
def test_the_spans_of_tokens_cover_the_text(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]()
    text = " ".join(text.split()).replace("\0", "")
    if any(0xD800 <= ord(character) < 0xE000 for character in text):
        return
    ids = tokenizer.encode(text)
    decoded = tokenizer.decode(ids)
    spans = tokenizer.spans(ids)
    assert len(spans) == len(ids)
    assert all(0 <= start <= end <= len(decoded) for start, end in spans)
    assert spans == sorted(spans)
    covered = {place for span in spans for place in range(*span)}
    assert covered >= {place for place, character in enumerate(decoded) if character != " "}


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_words_are_aligned_and_scored(kind: str) -> None:
    translator = made(TOKENIZERS[kind]())
    pairs = [("the old dog", "der alte Hund."), ("a woman", "eine Frau, ja"), ("", ""), ("a", ""), ("", "b")]
    aligned = align_words(translator, pairs)
    for (source, target), each in zip(pairs, aligned, strict=True):
        assert (each.source, each.target) == (source, target)
        assert each.weights_XY.shape == (len(word_spans(target)), len(word_spans(source)))
        if source and target:
            np.testing.assert_allclose(each.weights_XY.sum(1), 1, atol=1e-5)
        [whole] = log_probabilities(translator, [(source, target)])
        assert sum(each.log_probs_X) >= whole - 1e-4  # without the end
    [alone] = align_words(translator, pairs[:1])
    np.testing.assert_allclose(alone.weights_XY, aligned[0].weights_XY, atol=1e-6)
    np.testing.assert_allclose(alone.log_probs_X, aligned[0].log_probs_X, atol=1e-6)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (("THE OLD DOG SEES A CAT", "DER ALTE HUND"), ("The old dog sees a cat", "Der alte hund")),
        (("the dog’s cat", "der Hund"), ("the dog's cat", "der Hund")),
    ],
)
def test_pairs_are_read_as_translation_reads_them(
    translator: Translator, written: tuple[str, str], read: tuple[str, str]
) -> None:
    aligned, expected = align_words(translator, [written, read])
    assert (aligned.source, aligned.target) == written
    np.testing.assert_allclose(aligned.weights_XY, expected.weights_XY, atol=1e-6)
    assert aligned.log_probs_X == pytest.approx(expected.log_probs_X, abs=1e-6)
    scores = log_probabilities(translator, [written, read])
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)


def test_calibration_masks_as_scores_do() -> None:
    translator = made(train_bpe(SENTENCES * 3, vocab_size=340, masks=True))
    [bins], [score] = (
        [each(translator, [("see https://a.org", "siehe https://a.org")])]
        for each in (reliability_of_tokens, forced_scores)
    )
    assert sum(each.n for each in bins) == score[0].n_tokens < 8


def test_a_translator_drops_nothing_out() -> None:
    translator = made(byte_tokenizer(), p_drop=0.5)
    model = translator.model.train()
    pairs = [("the old dog", "der alte Hund")]
    scores = log_probabilities(translator, pairs)
    again = Translator(model, translator.tokenizers, translator.search, direction="en-de")
    assert log_probabilities(again, pairs) == log_probabilities(again, pairs) != scores


def test_weights_are_those_of_the_reference_path(translator: Translator) -> None:
    """A word's row: the mean over its tokens and the heads of the last layer, summed over the source word's tokens."""
    model, tokenizer = translator.model, translator.tokenizers.src
    assert isinstance(model, Transformer)
    source, target = "the old dog", "der Hund"
    recorded = {}
    src_BS = torch.tensor([[*tokenizer.encode(source), 2]])
    tgt_BT = torch.tensor([[1, *tokenizer.encode(target)]])
    with torch.no_grad():
        model(src_BS, tgt_BT, attention_hook=lambda kind, layer, weights: recorded.update({(kind, layer): weights}))
    weights_TS = recorded["cross", 1][0].mean(0)[:-1, :-1].numpy()
    word_of = [[[start <= begin < end for start, end in word_spans(text)].index(True) for begin, _ in spans]
               for text, spans in ((source, tokenizer.spans(tokenizer.encode(source))),
                                   (target, tokenizer.spans(tokenizer.encode(target))))]  # fmt: skip
    expected = np.zeros((2, 3))
    for row, tgt_word in enumerate(word_of[1]):
        for column, src_word in enumerate(word_of[0]):
            expected[tgt_word, src_word] += weights_TS[row, column]
    expected /= expected.sum(1, keepdims=True)
    expected /= expected.sum(0) + OF_NOBODY
    expected /= expected.sum(1, keepdims=True)
    [aligned] = align_words(translator, [(source, target)])
    np.testing.assert_allclose(aligned.weights_XY, expected, atol=1e-6)


def test_a_model_without_attention_has_uniform_weights() -> None:
    tokenizer = TOKENIZERS["bpe"]()
    torch.manual_seed(2)
    config = ModelConfig(
        system="last-state", n_encoder_layers=1, n_decoder_layers=1, d_model=16, src_vocab_size=tokenizer.size,
        tgt_vocab_size=tokenizer.size,
    )  # fmt: skip
    translator = Translator(
        make_model(config).eval(), Tokenizers(tokenizer, tokenizer), SearchConfig(), direction="en-de"
    )
    [aligned] = align_words(translator, [("a cat", "b")])
    np.testing.assert_allclose(aligned.weights_XY, [[0.5, 0.5]])
    assert all(math.isfinite(each) for each in aligned.log_probs_X)


@pytest.mark.merge
def test_the_command_takes_a_prefix(transduce: Callable[..., Any], micro_run: Path) -> None:
    model = micro_run / "model"
    lines = b"The dog sleeps.\nA cat.\n"
    out = transduce("translate", model, "--prefix", "Der Hund", stdin=lines)
    assert out.code == 0
    assert all(line.startswith("Der Hund") for line in out.out.splitlines())
    assert transduce("translate", model, "--prefix", "Der Hund", "--workers", 2, stdin=lines).out == out.out
    refused = transduce("translate", model, "--prefix", "Der Hund", "--rerank", model, stdin=lines)
    assert refused.code == 1
