"""The number of lines done grows while a chunk is translated, and ends with all of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from transduce.config.decoding import DecodingOptions
from transduce.inference import Translator, evaluate

WORDS = "old small young red big dog cat bird house tree".split()
LINES = [
    *(f"The {WORDS[n % 5]} {WORDS[5 + n // 5]} sleeps.{f' It sees {n} cats.' * (n % 3)}" for n in range(25)),
    *("", "2024", "..."),
]


@pytest.fixture(scope="module")
def translator(micro_model: Path) -> Translator:
    return Translator.load(micro_model)


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("chunk_lines", [1, 10, 100])
def test_lines_are_counted_within_a_chunk(translator: Translator, split: bool, chunk_lines: int) -> None:
    told: list[int] = []
    search = DecodingOptions(beam_size=1, max_tokens_per_batch=64).applied_to(translator.search)
    translated = list(
        translator.translate_lines(LINES, search=search, split=split, chunk_lines=chunk_lines, report=told.append)
    )
    assert len(translated) == len(LINES)
    assert all(before <= after for before, after in pairwise(told))
    assert told[-1] == len(LINES)
    assert len(set(told)) > 3


def test_evaluation_counts_them_too(translator: Translator) -> None:
    told: list[int] = []
    search = DecodingOptions(beam_size=1, max_tokens_per_batch=64).applied_to(translator.search)
    evaluate(translator, LINES, LINES, search=search, report=told.append)
    assert len(set(told)) > 3
    assert told[-1] == len(LINES)


def test_lines_without_words_alone(translator: Translator) -> None:
    told: list[int] = []
    assert [each.text for each in translator.translate_lines(["", "1 2", "—"], report=told.append)] == ["", "1 2", "—"]
    assert told[-1] == 3
