"""Streams in pieces of bounded size: by how many items there are, and by how many characters they have together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

__all__ = ["MOST_CHARACTERS_AT_A_TIME", "chunks"]

ItemT = TypeVar("ItemT")

# Held at a time, beyond one item. Text of usual lines reaches the limit of items first.
MOST_CHARACTERS_AT_A_TIME = 1 << 20


def chunks(
    items: Iterable[ItemT],
    most_items: int,
    n_characters: Callable[[ItemT], int],
    *,
    most_characters: int = MOST_CHARACTERS_AT_A_TIME,
) -> Iterator[list[ItemT]]:
    """The items in order, in lists that end when one has ``most_items`` or ``most_characters``.

    No item is read beyond that: a stream that waits for an answer gets one.

    >>> list(chunks(["a", "long", "b", "c", "d"], 3, len, most_characters=4))
    [['a', 'long'], ['b', 'c', 'd']]
    """
    chunk: list[ItemT] = []
    held = 0
    for item in items:
        chunk.append(item)
        held += n_characters(item)
        if len(chunk) >= most_items or held >= most_characters:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk
