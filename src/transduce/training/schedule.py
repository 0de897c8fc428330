"""The learning rate over a run. Section 5.3."""

from __future__ import annotations

__all__ = ["inverse_sqrt_lr"]


def inverse_sqrt_lr(step: int, *, d_model: int, warmup_steps: int) -> float:
    """Learning rate of update ``step`` (counted from 1). Section 5.3, equation 3.

    Raises ValueError if any argument is below 1.

    >>> f"{inverse_sqrt_lr(4000, d_model=512, warmup_steps=4000):.6f}"
    '0.000699'
    """
    if min(step, d_model, warmup_steps) < 1:
        raise ValueError(f"step, d_model and warmup_steps start at 1, got {step}, {d_model}, {warmup_steps}")
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))
