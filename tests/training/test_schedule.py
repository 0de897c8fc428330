"""Learning rate schedules: equation 3, linear and cosine decay to 0."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal

import pytest

from transduce.config import TrainingConfig
from transduce.training import inverse_sqrt_lr, learning_rate

WARMUP, LAST = 100, 1000
DOWNWARDS: tuple[Literal["linear", "cosine"], ...] = ("linear", "cosine")


def rate(step: int, decay: Literal["inverse_sqrt", "linear", "cosine"]) -> float:
    config = TrainingConfig(max_updates=LAST, warmup_steps=WARMUP, lr_factor=0.5, decay=decay)
    return learning_rate(step, d_model=64, config=config)


def test_equation_3_unless_another_way_down_is_asked_for() -> None:
    assert TrainingConfig().decay == "inverse_sqrt"
    for step in (1, WARMUP, WARMUP + 1, LAST):
        assert rate(step, "inverse_sqrt") == 0.5 * inverse_sqrt_lr(step, d_model=64, warmup_steps=WARMUP)


@pytest.mark.parametrize("decay", DOWNWARDS)
def test_all_warm_up_alike_and_reach_nothing_after_the_last_update(decay: Literal["linear", "cosine"]) -> None:
    for step in (1, 50, WARMUP):
        assert rate(step, decay) == rate(step, "inverse_sqrt")
    after = [rate(step, decay) for step in range(WARMUP, LAST + 1)]
    assert all(later < earlier for earlier, later in pairwise(after))
    assert 0 < after[-1] < after[0] / 100
    assert rate(LAST + 1, decay) == pytest.approx(0, abs=1e-12)
    assert rate(LAST + 500, decay) == pytest.approx(0, abs=1e-12)  # a run whose max_updates was lowered


def test_half_way_each_has_half_of_the_highest() -> None:
    highest = 0.5 / math.sqrt(64 * WARMUP)
    middle = (WARMUP + LAST + 1) / 2
    for decay in DOWNWARDS:
        assert (rate(math.floor(middle), decay) + rate(math.ceil(middle), decay)) / 2 == pytest.approx(
            highest / 2, rel=0.01
        )
