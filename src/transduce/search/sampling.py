"""How the next token is drawn from the model's distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass

from transduce.errors import SearchError

__all__ = ["Sampling"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. Raises SearchError for a value that makes no distribution."""

    temperature: float = 1.0  # divides the logits; 0 is greedy search
    top_k: int | None = None  # keep the k most probable tokens
    top_p: float | None = None  # keep the fewest tokens with at least this probability (Holtzman et al., 2020)

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise SearchError(f"temperature should be a number from 0, got {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise SearchError(f"top_k should be at least 1, got {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise SearchError(f"top_p should be above 0 and at most 1, got {self.top_p}")
