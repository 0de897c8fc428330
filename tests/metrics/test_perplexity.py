from __future__ import annotations

import math

import pytest

from transduce.metrics import perplexity


@pytest.mark.parametrize("vocab_size", [1, 2, 37_000])
def test_a_uniform_model_hesitates_between_all_tokens(vocab_size):
    assert perplexity(12 * math.log(vocab_size), 12) == pytest.approx(vocab_size)


def test_a_certain_model_has_perplexity_1():
    assert perplexity(0.0, 5) == 1.0


def test_it_is_per_token_and_not_per_sum():
    assert perplexity(20.0, 10) == pytest.approx(perplexity(200.0, 100))


def test_a_loss_too_large_gives_infinity():
    assert perplexity(1e6, 1) == math.inf
    assert perplexity(math.inf, 1) == math.inf


def test_a_loss_that_is_not_a_number_stays_so():
    assert math.isnan(perplexity(math.nan, 1))


@pytest.mark.parametrize("n_tokens", [0, -1])
def test_no_tokens_are_refused(n_tokens):
    with pytest.raises(ValueError, match=rf"\bn_tokens\b.*\b1\b.* {n_tokens}\b"):
        perplexity(1.0, n_tokens)
