"""The learning rate over a run. Section 5.3, and other ways down as a switch."""

from __future__ import annotations

import math
from typing import assert_never

from transduce.config import TrainingConfig

__all__ = ["inverse_sqrt_lr", "learning_rate"]


def learning_rate(step: int, *, d_model: int, config: TrainingConfig) -> float:
    """Learning rate of update ``step`` (counted from 1): up to the warm-up's end as in equation 3, then as chosen.

    "inverse_sqrt" is equation 3 throughout; "linear" and "cosine" fall from its highest value to 0, which they would
    reach one update after the last. Deviates: all are multiplied by ``lr_factor``.
    """
    warmup_steps = config.warmup_steps
    if step <= warmup_steps or config.decay == "inverse_sqrt":
        return config.lr_factor * inverse_sqrt_lr(step, d_model=d_model, warmup_steps=warmup_steps)
    highest = config.lr_factor * inverse_sqrt_lr(warmup_steps, d_model=d_model, warmup_steps=warmup_steps)
    share_done = min(1.0, (step - warmup_steps) / (config.max_updates + 1 - warmup_steps))
    match config.decay:
        case "linear":
            return highest * (1 - share_done)
        case "cosine":
            return highest * (1 + math.cos(math.pi * share_done)) / 2
        case _:
            assert_never(config.decay)


def inverse_sqrt_lr(step: int, *, d_model: int, warmup_steps: int) -> float:
    """Learning rate of update ``step`` (counted from 1). Section 5.3, equation 3.

    Raises ValueError if any argument is below 1.

    >>> f"{inverse_sqrt_lr(4000, d_model=512, warmup_steps=4000):.6f}"
    '0.000699'
    """
    if min(step, d_model, warmup_steps) < 1:
        raise ValueError(f"step, d_model and warmup_steps start at 1, got {step}, {d_model}, {warmup_steps}")
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))
