from __future__ import annotations

import random

import pytest

from transduce.errors import DataError
from transduce.metrics import paired_bootstrap, sacrebleu_score

WORDS = ["der", "die", "Hund", "Mann", "Frau", "Kind", "schläft", "spielt", "liest", "im", "am", "Garten", "Ball"]


def noisy(lines: list[str], *, p_wrong: float, seed: int) -> list[str]:
    """``lines`` with each word replaced by a random one with probability ``p_wrong``."""
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) if rng.random() < p_wrong else word for word in line.split()) for line in lines]


REFERENCES = noisy(["x " * 12] * 200, p_wrong=1.0, seed=0)
GOOD = noisy(REFERENCES, p_wrong=0.1, seed=1)
ALSO_GOOD = noisy(REFERENCES, p_wrong=0.1, seed=2)
BAD = noisy(REFERENCES, p_wrong=0.3, seed=3)


def test_identical_systems_do_not_differ():
    result = paired_bootstrap(GOOD, GOOD, REFERENCES, seed=1, n_resamples=50)
    assert (result.difference, result.interval, result.p_value) == (0.0, (0.0, 0.0), 1.0)


def test_equally_good_systems_do_not_differ_significantly():
    result = paired_bootstrap(GOOD, ALSO_GOOD, REFERENCES, seed=1, n_resamples=200)
    assert result.p_value > 0.1
    assert result.interval[0] < 0 < result.interval[1]


def test_a_clearly_better_system_is_significantly_better():
    result = paired_bootstrap(BAD, GOOD, REFERENCES, seed=1, n_resamples=200)
    assert result.a == sacrebleu_score(BAD, REFERENCES)
    assert result.b == sacrebleu_score(GOOD, REFERENCES)
    assert result.difference == result.b.score - result.a.score > 0
    assert 0 < result.interval[0] < result.difference < result.interval[1]
    assert result.p_value == 1 / 201


def test_exchanged_systems_give_the_mirror_image():
    forth = paired_bootstrap(BAD, GOOD, REFERENCES, seed=1, n_resamples=50)
    back = paired_bootstrap(GOOD, BAD, REFERENCES, seed=1, n_resamples=50)
    assert back.p_value == forth.p_value
    assert back.interval == pytest.approx((-forth.interval[1], -forth.interval[0]))


def test_the_seed_decides():
    first, again, other = (paired_bootstrap(BAD, GOOD, REFERENCES, seed=s, n_resamples=50) for s in (1, 1, 2))
    assert first == again
    assert first.interval != other.interval


def test_one_sentence_has_one_test_set():
    result = paired_bootstrap(BAD[:1], GOOD[:1], REFERENCES[:1], seed=1, n_resamples=20)
    assert result.interval == pytest.approx((result.difference, result.difference))


def test_wrong_arguments_are_refused():
    with pytest.raises(DataError, match=r"\b199\b.*\b200\b"):
        paired_bootstrap(GOOD, BAD[1:], REFERENCES, seed=1)
    with pytest.raises(ValueError, match=r"\bn_resamples\b.*\b1\b.*\b0\b"):
        paired_bootstrap(GOOD, BAD, REFERENCES, seed=1, n_resamples=0)
