"""Changes of a text at several places, and texts in several pieces."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TypeVar

__all__ = ["Change", "joined_strings", "with_changes"]

OtherT = TypeVar("OtherT")

Change = tuple[int, int, str]  # from, to, what stands there instead


def with_changes(text: str, changes: Iterable[Change]) -> str:
    """Return a text with changes, in any order, that do not overlap.

    >>> with_changes("one two", [(4, 7, "2"), (0, 0, "> ")])
    '> one 2'
    """
    pieces, position = list[str](), 0
    for start, end, new in sorted(changes, key=lambda change: change[:2]):
        pieces += text[position:start], new
        position = end
    return "".join([*pieces, text[position:]])


def joined_strings(pieces: Iterable[str | OtherT]) -> list[str | OtherT]:
    """Return the pieces of a text, with neighbouring strings as one and none empty, in linear time.

    >>> joined_strings(["a", "b", 1, "", 2])
    ['ab', 1, 2]
    """
    joined: list[str | OtherT] = []
    for is_string, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        neighbours = list(group)
        joined += filter(None, ["".join(map(str, neighbours))]) if is_string else neighbours
    return joined
