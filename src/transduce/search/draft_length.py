"""Where drafts of a smaller model end."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DraftLength"]


@dataclass(frozen=True, slots=True)
class DraftLength:
    """Where the draft of a smaller model ends: after ``n_tokens``, or after a token that it is not sure of.

    That is one with less than ``min_probability``; what would follow it is likely to be rejected. 0: never.
    Raises ValueError for less than one token, or a probability outside of 0 to 1.
    """

    n_tokens: int
    min_probability: float = 0.0

    def __post_init__(self) -> None:
        if self.n_tokens < 1:
            raise ValueError(f"a draft should have at least 1 token, got {self.n_tokens}")
        if not 0 <= self.min_probability <= 1:
            raise ValueError(f"a probability of drafted tokens is from 0 to 1, got {self.min_probability}")
