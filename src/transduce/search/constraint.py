"""The interface of constrained decoding: a grammar, a closed list of outputs, matching brackets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Constraint"]


class Constraint(Protocol):
    """A function from a prefix to the tokens allowed next. It must depend on its arguments only.

    It is called for every beam at every step, and only for prefixes that it allowed, so caching the result for the
    shorter prefix makes it cheap.
    """

    def __call__(self, sentence: int, prefix: tuple[int, ...], /) -> Sequence[int]:
        """The ids allowed after ``prefix``, which excludes BOS; ``sentence`` counts from 0."""
