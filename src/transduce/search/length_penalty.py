"""The length penalty of section 6.1: Wu et al. (2016), equation 14."""

from __future__ import annotations

from typing import TypeVar

from torch import Tensor

__all__ = ["length_penalty"]

LengthT = TypeVar("LengthT", float, Tensor)


def length_penalty(length: LengthT, /, *, alpha: float) -> LengthT:
    """``((5 + length) / 6) ** alpha``, the divisor of a log-probability; ``length`` includes EOS.

    It is 1 for length 1, and for every length if alpha is 0. It differs from fairseq's ``length ** alpha``: a value of
    alpha tuned for one does not suit the other.

    >>> [round(length_penalty(n, alpha=0.6), 3) for n in (1.0, 7.0, 25.0)]
    [1.0, 1.516, 2.627]
    """
    penalty: LengthT = ((5 + length) / 6) ** alpha
    return penalty
