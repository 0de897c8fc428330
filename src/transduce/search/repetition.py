"""How often a sequence repeats itself.

A loop is a unit of few tokens written again and again, as in "behind behind behind behind". Not in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["MAX_UNIT", "n_repeats"]

MAX_UNIT = 8  # tokens of the longest unit whose repetition counts as a loop


def n_repeats(ids: Sequence[object], unit: int, /) -> int:
    """The greatest number of times that ``unit`` tokens, or words, follow each other in ``ids``; at least 1.

    >>> n_repeats([5, 7, 7, 7, 6], 1), n_repeats([5, 6, 5, 6, 5, 6, 5], 2)
    (3, 3)
    """
    longest = run = 0  # tokens in a row that equal the one ``unit`` places before
    for earlier, later in zip(ids, ids[unit:], strict=False):
        run = run + 1 if earlier == later else 0
        longest = max(longest, run)
    return longest // unit + 1
