"""The length penalty of section 6.1: Wu et al. (2016), equation 14."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from transduce.config import SearchConfig

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["NO_PENALTY", "LengthPenalty"]

LengthT = TypeVar("LengthT", "float", "Tensor")


@dataclass(frozen=True, slots=True)
class LengthPenalty:
    """``((5 + length) / 6) ** alpha``, the divisor of a log-probability; ``length`` includes EOS.

    It is 1 for length 1, and for every length if alpha is 0. It differs from fairseq's ``length ** alpha``: a value of
    alpha tuned for one does not suit the other. Beam search needs a penalty that does not fall with the length.

    >>> [round(LengthPenalty(0.6)(n), 3) for n in (1.0, 7.0, 25.0)]
    [1.0, 1.516, 2.627]
    """

    alpha: float = 0.0

    def __post_init__(self) -> None:
        """Raise ValueError for a negative alpha."""
        if self.alpha < 0:
            raise ValueError(f"alpha must be at least 0, got {self.alpha}")

    @classmethod
    def of(cls, search: SearchConfig) -> LengthPenalty:
        """Return the penalty that the settings of a search ask for."""
        return cls(search.alpha)

    def __call__(self, length: LengthT, /) -> LengthT:
        """Return the divisor for one length, or for each of a tensor of any shape."""
        penalty: LengthT = ((5 + length) / 6) ** self.alpha
        return penalty


NO_PENALTY = LengthPenalty()
