"""Which ids complete a phrase."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Phrase", "completing_ids"]

Phrase = Sequence[int]


def completing_ids(ids: Sequence[int], phrases: Sequence[Phrase]) -> list[int]:
    """Return the ids that would complete a phrase after ``ids``.

    >>> completing_ids([7, 5, 6], [(6, 8), (5, 6, 9), (5, 8), (3,)])
    [8, 9, 3]
    """
    return [each[-1] for each in phrases if list(ids[len(ids) + 1 - len(each) :]) == list(each[:-1])]
