"""Chunks of a stream, bounded in items and in total characters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

__all__ = ["MAX_CHARACTERS", "chunks"]

ItemT = TypeVar("ItemT")

# Memory bound of a chunk. With lines of usual length the item limit is reached first.
MAX_CHARACTERS = 1 << 20


def chunks(
    items: Iterable[ItemT],
    max_items: int,
    n_characters: Callable[[ItemT], int],
    *,
    max_characters: int = MAX_CHARACTERS,
) -> Iterator[list[ItemT]]:
    """Yield the items in order, in lists that end once they reach ``max_items`` or ``max_characters``.

    No item is read ahead of a full chunk, so an interactive stream is answered at once.

    >>> list(chunks(["a", "long", "b", "c", "d"], 3, len, max_characters=4))
    [['a', 'long'], ['b', 'c', 'd']]
    """
    chunk: list[ItemT] = []
    size = 0
    for item in items:
        chunk.append(item)
        size += n_characters(item)
        if len(chunk) >= max_items or size >= max_characters:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
