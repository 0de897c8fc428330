"""Learning rate schedules: section 5.3, and linear or cosine decay as options."""

from __future__ import annotations

import math
from typing import assert_never

from transduce.config import TrainingConfig

__all__ = ["inverse_sqrt_lr", "learning_rate", "peak_learning_rate"]


def learning_rate(step: int, *, d_model: int, config: TrainingConfig, elapsed_s: float = 0.0) -> float:
    """Return the learning rate of update ``step`` (from 1): warm-up as in equation 3, then the configured decay.

    "inverse_sqrt" is equation 3 throughout; "linear" and "cosine" decay from its peak to 0, reached one update after
    the last. In an extension the rate rises, for a tenth of its updates, to that which a run of the whole length would
    have there, and follows it. A run with ``max_minutes`` decays by its time, if that is to end it first; ``elapsed_s``
    is the time so far. Deviates: all are multiplied by ``lr_factor``.
    """
    warmup_steps = config.warmup_steps
    if step <= warmup_steps or config.decay == "inverse_sqrt":
        return config.lr_factor * inverse_sqrt_lr(step, d_model=d_model, warmup_steps=warmup_steps)
    start = max((update for update in config.extended_at if update < step), default=0)
    end = min((update for update in config.extended_at if update >= step), default=config.max_updates)
    rise = min(1.0, (step - start) / max(1, (end - start) // 10)) if start else 1.0
    peak = peak_learning_rate(d_model=d_model, config=config) * rise
    time = 0.0 if config.max_minutes is None else elapsed_s / (60 * config.max_minutes)
    progress = min(1.0, max(time, (step - warmup_steps) / (end + 1 - warmup_steps)))
    match config.decay:
        case "linear":
            return peak * (1 - progress)
        case "cosine":
            return peak * (1 + math.cos(math.pi * progress)) / 2
        case _:
            assert_never(config.decay)


def peak_learning_rate(*, d_model: int, config: TrainingConfig) -> float:
    """Return the highest learning rate, that of the last update of warm-up."""
    steps = config.warmup_steps
    return config.lr_factor * inverse_sqrt_lr(steps, d_model=d_model, warmup_steps=steps)


def inverse_sqrt_lr(step: int, *, d_model: int, warmup_steps: int) -> float:
    """Return the learning rate of update ``step`` (from 1). Section 5.3, equation 3.

    Raises ValueError if an argument is below 1.

    >>> f"{inverse_sqrt_lr(4000, d_model=512, warmup_steps=4000):.6f}"
    '0.000699'
    """
    if min(step, d_model, warmup_steps) < 1:
        raise ValueError(f"step, d_model and warmup_steps must be at least 1, got {step}, {d_model}, {warmup_steps}")
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))
