"""The length penalty of section 6.1, which is that of Wu et al. (2016), equation 14."""

from __future__ import annotations

from typing import TypeVar

from torch import Tensor

__all__ = ["length_penalty"]

LengthT = TypeVar("LengthT", float, Tensor)


def length_penalty(length: LengthT, /, *, alpha: float) -> LengthT:
    """``((5 + length) / 6) ** alpha``, by which a log-probability is divided; ``length`` counts the end symbol.

    It is 1 for length 1, and 1 throughout where alpha is 0. fairseq's ``length ** alpha`` is another function:
    an alpha chosen for one is not right for the other.

    >>> [round(length_penalty(n, alpha=0.6), 3) for n in (1.0, 7.0, 25.0)]
    [1.0, 1.516, 2.627]
    """
    penalty: LengthT = ((5 + length) / 6) ** alpha
    return penalty
