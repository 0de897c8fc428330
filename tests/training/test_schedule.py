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


@pytest.mark.parametrize("decay", DOWNWARDS)
def test_a_run_that_its_time_ends_first_decays_by_it(decay: Literal["linear", "cosine"]) -> None:
    config = TrainingConfig(max_updates=LAST, warmup_steps=WARMUP, lr_factor=0.5, decay=decay, max_minutes=2.0)

    def timed(step: int, elapsed_s: float) -> float:
        return learning_rate(step, d_model=64, config=config, elapsed_s=elapsed_s)

    assert timed(WARMUP // 2, 119.0) == rate(WARMUP // 2, decay)
    assert timed(LAST // 2, 10.0) == rate(LAST // 2, decay)
    slow = [timed(WARMUP + n, 1.2 * n) for n in range(100)]
    assert all(later < earlier for earlier, later in pairwise(slow[10:]))
    assert slow[-1] == pytest.approx(0, abs=1e-3 * slow[0] + 1e-9) if decay == "cosine" else slow[-1] < slow[0] / 90
    assert timed(WARMUP + 100, 121.0) == 0


@pytest.mark.parametrize("decay", DOWNWARDS)
def test_an_extension_rises_to_what_a_longer_run_would_have(decay: Literal["linear", "cosine"]) -> None:
    longer = TrainingConfig(max_updates=3000, warmup_steps=WARMUP, lr_factor=0.5, decay=decay)
    extended = longer.model_copy(update={"extended_at": (LAST, 2000)})
    for step in (1, WARMUP, 500, LAST):
        assert learning_rate(step, d_model=64, config=extended) == rate(step, decay)
    for start in (LAST, 2000):
        rising = [learning_rate(start + n, d_model=64, config=extended) for n in (1, 50, 100)]
        assert rising == sorted(rising)
    for step in (2100, 2500, 3000):
        assert learning_rate(step, d_model=64, config=extended) == learning_rate(step, d_model=64, config=longer)
