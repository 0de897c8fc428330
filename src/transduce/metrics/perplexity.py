"""Perplexity."""

from __future__ import annotations

import math

__all__ = ["perplexity"]


def perplexity(nats: float, n_tokens: int) -> float:
    """Return ``exp(nats / n_tokens)`` of a summed cross-entropy without label smoothing. Table 3, PPL.

    It is per subword token, so only models with the same vocabulary can be compared.
    Overflow gives infinity. Raises ValueError if ``n_tokens`` is below 1.

    >>> round(perplexity(1593.3, 1000), 2)
    4.92
    """
    if n_tokens < 1:
        raise ValueError(f"n_tokens must be at least 1, got {n_tokens}")
    try:
        return math.exp(nats / n_tokens)
    except OverflowError:
        return math.inf
