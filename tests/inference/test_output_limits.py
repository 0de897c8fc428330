"""Limits of outputs in every search that has them: min_length, max_length, no_repeat_ngram."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from said import naming
from small_models import untrained_translator
from transduce.config import (
    BeamSearchConfig,
    GreedySearchConfig,
    MaskPredictSearchConfig,
    ModelConfig,
    SampledSearchConfig,
    SearchConfig,
    config_from_mapping,
)
from transduce.config.decoding import DecodingOptions
from transduce.errors import ConfigError
from transduce.inference.engines import make_engine
from transduce.inference.text_search import SearchResult, TextSearch
from transduce.inference.translation.word_loops import is_repetitive
from transduce.model import make_model
from transduce.search import MAX_UNIT, n_repeats
from transduce.text import byte_tokenizer, train_bpe

TEXTS = ["the old dog", "a", "a cat sees the woman", "yes"]
SIZES = {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 16, "d_ff": 24, "n_heads": 2, "d_k": 8, "d_v": 8}
SEARCHES = [BeamSearchConfig(beam_size=3), GreedySearchConfig()]


@pytest.fixture(scope="module")
def text_search() -> TextSearch:
    """An untrained model, which writes long and repeats itself."""
    torch.manual_seed(5)
    tokenizer = byte_tokenizer()
    config = ModelConfig(**SIZES, src_vocab_size=tokenizer.size, tgt_vocab_size=tokenizer.size)
    return TextSearch(make_engine(make_model(config).double().eval()), tokenizer)


def outputs(text_search: TextSearch, search: SearchConfig, texts: Sequence[str] = TEXTS) -> list[tuple[int, ...]]:
    results = text_search(texts, search)
    assert results is not None
    return [result.hypotheses[0].ids for result in results]


def with_limits(search: SearchConfig, **limits: Any) -> SearchConfig:
    return DecodingOptions(**limits).applied_to(search)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_lengths(text_search: TextSearch, search: SearchConfig) -> None:
    free = outputs(text_search, search)
    assert max(map(len, free)) > 9
    assert max(map(len, outputs(text_search, with_limits(search, max_length=9)))) <= 9
    least = max(map(len, free)) + 2
    assert min(map(len, outputs(text_search, with_limits(search, min_length=least, max_extra_tokens=90)))) >= least


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_a_least_length_has_room(text_search: TextSearch, search: SearchConfig) -> None:
    assert min(map(len, outputs(text_search, with_limits(search, min_length=70)))) >= 70
    assert {len(ids) for ids in outputs(text_search, with_limits(search, min_length=70, max_length=71))} <= {70, 71}


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_ngram_twice(text_search: TextSearch, search: SearchConfig, n: int) -> None:
    def has_one_twice(ids: tuple[int, ...]) -> bool:
        grams = [ids[start : start + n] for start in range(len(ids) - n + 1)]
        return len(grams) > len(set(grams))

    assert any(map(has_one_twice, outputs(text_search, search)))
    limited = with_limits(search, no_repeat_ngram=n)
    found = outputs(text_search, limited)
    assert not any(map(has_one_twice, found))
    assert found == [outputs(text_search, limited, [text])[0] for text in TEXTS]  # whatever else is in the batch


@pytest.mark.parametrize("least", [3, 7])
def test_settings_that_contradict_each_other_are_refused(least: int) -> None:
    """An output of three tokens has its end as the third."""
    with pytest.raises(ConfigError, match=naming("min_length", "max_length", least, 3)):
        config_from_mapping(SearchConfig, {"min_length": least, "max_length": 3}, where="search")


@pytest.mark.parametrize("search", [SampledSearchConfig(), MaskPredictSearchConfig()], ids=lambda search: search.kind)
@pytest.mark.parametrize("limit", ["min_length", "no_repeat_ngram"])
def test_searches_without_such_limits_say_so(search: SearchConfig, limit: str) -> None:
    with pytest.raises(ConfigError, match=naming(limit, search.kind)):
        with_limits(search, **{limit: 2})


@pytest.mark.parametrize("options", [["--min-length", 3, "--max-length", 2], ["--no-repeat-ngram", 0]])
def test_the_command_line_refuses_wrong_limits(transduce: Any, micro_model: Path, options: list[object]) -> None:
    outcome = transduce("translate", micro_model, *options, stdin=b"the old dog\n")
    assert outcome.code == 1
    assert outcome.out == ""


@pytest.mark.merge
def test_limits_on_the_command_line(transduce: Any, micro_model: Path) -> None:
    text = "the old dog sees the cat\n"
    plain = transduce("translate", micro_model, stdin=text.encode())
    limited = transduce("translate", micro_model, "--max-length", 1, "--json", stdin=text.encode())
    workers = transduce("translate", micro_model, "--max-length", 1, "--json", "--workers", 2, stdin=text.encode())
    assert limited.code == workers.code == 0
    assert limited.out == workers.out != plain.out


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_no_loops(text_search: TextSearch, search: SearchConfig) -> None:
    texts = [*TEXTS, "a a a a a a a"]
    free, results = text_search(texts, search), text_search(texts, search, has_loops=False)
    assert free is not None and results is not None  # noqa: PT018
    sources = text_search.source_ids(texts)

    def repeats(ids: Sequence[int]) -> list[int]:
        return [n_repeats(ids, unit) for unit in range(1, MAX_UNIT + 1)]

    def loops(result: SearchResult, source: list[int]) -> bool:
        found = zip(repeats(result.hypotheses[0].ids), repeats(source), strict=True)
        return any(n > max(n_of_source, 3 if unit == 1 else 2) for unit, (n, n_of_source) in enumerate(found, start=1))

    assert any(map(loops, free, sources))
    assert not any(map(loops, results, sources))


def test_a_translation_that_loops_is_searched_again() -> None:
    tokenizer = train_bpe(["the old dog sees a cat", "eine Frau sieht die Katze nicht"] * 3, vocab_size=320)
    translator = untrained_translator(tokenizer, seed=5, search=SearchConfig(beam_size=2), **SIZES)
    texts = [f"the old dog sees {n} cats" for n in "abcdefgh"]
    unchecked = translator.translate_segments(texts, translator.search, is_checked=False)
    assert unchecked is not None
    assert any(is_repetitive(text, each.n_best[0].text) for text, each in zip(texts, unchecked, strict=True))
    for translation in translator.translate_lines(texts):
        assert not is_repetitive(translation.source, translation.text)


@pytest.mark.merge
def test_links_of_words_are_those_of_any_number_of_workers(transduce: Any, micro_model: Path) -> None:
    text = b"the old dog\n2024\n\nThe cat sleeps. She sees a  dog!\n"
    plain = transduce("translate", micro_model, stdin=text).out.split("\n")[:-1]
    linked = transduce("translate", micro_model, "--alignment", stdin=text).out.split("\n")[:-1]
    workers = transduce("translate", micro_model, "--alignment", "--workers", 2, "--buffer", 2, stdin=text)
    as_json = transduce("translate", micro_model, "--alignment", "--json", stdin=text).out.split("\n")[:-1]
    assert workers.out.split("\n")[:-1] == linked
    assert [line.partition("\t")[0] for line in linked] == plain
    assert [json.loads(line)["alignment"] for line in as_json] == [line.partition("\t")[2] for line in linked]
    for source, line in zip(text.decode().split("\n"), linked, strict=False):
        target, _, links = line.partition("\t")
        pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
        assert [number for _, number in pairs] == list(range(len(target.split())))[: len(pairs)]
        assert all(number < len(source.split()) for number, _ in pairs)
    assert [bool(line.partition("\t")[2]) for line in linked] == [True, False, False, True]
