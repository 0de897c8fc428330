"""The edit distance of two sequences, for error rates and for memories."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

__all__ = ["edit_distance"]


def edit_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return the least number of substitutions, deletions and insertions between two sequences (Levenshtein, 1965).

    The bit-parallel algorithm of Myers (1999) in the form of Hyyrö (2003): bit i of ``rises`` and ``falls`` says
    whether the distance grows or shrinks by one from prefix i to prefix i + 1 of ``one``, so that a column of the table
    of distances is two integers.

    >>> edit_distance("kitten", "sitting"), edit_distance(["a", "b"], ["b"]), edit_distance("", "abc")
    (3, 1, 3)
    """
    if not one:
        return len(other)
    places: dict[Hashable, int] = {}
    for place, unit in enumerate(one):
        places[unit] = places.get(unit, 0) | 1 << place
    everywhere, last = (1 << len(one)) - 1, 1 << len(one) - 1
    rises, falls, distance = everywhere, 0, len(one)
    for unit in other:
        equal = places.get(unit, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls  # distance equal to that one up and to the left
        right_rises, right_falls = (falls | ~(diagonal | rises)) & everywhere, rises & diagonal
        distance += bool(right_rises & last) - bool(right_falls & last)
        right_rises = right_rises << 1 | 1
        rises, falls = (right_falls << 1 | ~(diagonal | right_rises)) & everywhere, right_rises & diagonal & everywhere
    return distance
