"""Held-out dev and test: neither they nor near-duplicates of them are in training."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from said import naming
from transduce.corpora import generate_pairs, hold_out
from transduce.corpora.holding_out import _key, held_out_size
from transduce.errors import DataError

Pairs = list[tuple[str, str]]
TEXT: Pairs = [(pair.en, pair.de) for pair in generate_pairs("train", n_pairs=900, seed=1)]


def parts(pairs: Pairs, seed: int = 1) -> tuple[Pairs, Pairs, Pairs, int]:
    held = hold_out(lambda: iter(pairs), seed=seed)
    train = list(held.train(iter(pairs)))
    return train, held.dev, held.test, held.n_left_out


def test_each_pair_is_in_one_part() -> None:
    train, dev, test, n_left_out = parts(TEXT)
    assert len(dev) == len(test) == held_out_size(len(TEXT)) == 30
    assert len(train) + len(dev) + len(test) + n_left_out == len(TEXT)
    assert not set(train) & set(dev + test)
    assert not set(dev) & set(test)


def test_the_choice_is_random_and_repeatable() -> None:
    assert parts(TEXT) == parts(TEXT)
    assert parts(TEXT)[2] != parts(TEXT, seed=2)[2]
    places = [TEXT.index(pair) for pair in parts(TEXT)[2]]
    assert min(places) < 200
    assert max(places) > 700


def test_what_comes_again_stays_in_training_where_it_can() -> None:
    """Half of the text is one greeting: held out, it would remove half of the training text."""
    pairs = [pair for each in TEXT for pair in (each, ("Hello!", "Hallo!"))]
    train, dev, test, n_left_out = parts(pairs)
    assert ("Hello!", "Hallo!") not in dev + test
    assert train.count(("Hello!", "Hallo!")) == len(TEXT)
    assert n_left_out < 30


@given(st.integers(0, 2**32))
def test_nothing_like_a_held_out_line_is_trained_on(seed: int) -> None:
    draw = random.Random(seed)
    words = ["page", "Page", "seite", "1", "22", "!", "(b)", "end", "x"]
    pairs = [
        (" ".join(draw.choices(words, k=draw.randint(1, 4))), " ".join(draw.choices(words, k=draw.randint(1, 4))))
        for _ in range(200)
    ]
    train, dev, test, n_left_out = parts(pairs)
    for side in (0, 1):
        kept = {_key(pair[side]) for pair in train}
        assert kept.isdisjoint(_key(pair[side]) for pair in dev + test)
        assert {_key(pair[side]) for pair in dev}.isdisjoint(_key(pair[side]) for pair in test)
    assert len(train) + n_left_out <= len(pairs)


def test_what_a_tokenizer_reads_alike_is_alike_and_vowel_signs_tell_words_apart() -> None:
    assert _key("Caf\u00e9 n\u00b0 1") == _key("cafe\u0301 n\u00b0 2") == _key("Ca\u00adfé n° 3")
    assert _key("वह गया।") == _key("वह गया")  # he went
    assert _key("वह गया।") != _key("वह गयी।")  # she went
    assert _key("\u2764\ufe0f A heart") == _key("a heart \u0301")


def test_a_stream_is_read_each_time_anew() -> None:
    n_reads = 0

    def read() -> Iterator[tuple[str, str]]:
        nonlocal n_reads
        n_reads += 1
        yield from TEXT

    hold_out(read)
    assert n_reads == 3


def test_too_little_text_is_told() -> None:
    with pytest.raises(DataError, match=naming(59)):
        hold_out(lambda: iter(TEXT[:59]))
