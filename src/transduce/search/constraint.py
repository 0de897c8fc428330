"""What an output may go on with: grammar, a closed list of forms, brackets that must match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Constraint"]


class Constraint(Protocol):
    """A function from what an output is so far to the symbols that may come next.

    It is asked for every beam at every step, about prefixes that it has allowed: one that remembers what it found for
    the shorter prefix has little to do. Its answer must depend on its arguments alone.
    """

    def __call__(self, sentence: int, prefix: tuple[int, ...], /) -> Sequence[int]:
        """Ids that may follow ``prefix``, which is without the begin symbol; ``sentence`` counts from 0."""
