"""Changes of a text at several places."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Change", "with_changes"]

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
