"""The interface of constrained decoding, for example by a grammar, a closed list of outputs or matching brackets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Constraint"]


class Constraint(Protocol):
    """A function from a prefix to the tokens allowed next. It must depend on its arguments only.

    It is called for every beam at every step, only with prefixes that it allowed. Each extends, by one token, a prefix
    of the previous step, so caching the state of that prefix makes a call cheap.
    """

    def __call__(self, sentence: int, prefix: tuple[int, ...], /) -> Sequence[int]:
        """The ids allowed after ``prefix``, which excludes BOS; ``sentence`` counts from 0."""
