"""How alike two texts are: by the words that must be changed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from transduce.edit_distance import edit_distance
from transduce.patterns import compiled_on_use
from transduce.text.characters import SPACELESS

__all__ = ["compared_words", "similarity"]

_WORD = compiled_on_use(rf"[{SPACELESS}]|[^\W_{SPACELESS}]+|[^\w\s]|_")


def compared_words(key: str) -> list[str]:
    """Return the words and punctuation marks of a text, without regard to case; the sign of a number is a word.

    >>> compared_words("Don't go, 東京!")
    ['don', "'", 't', 'go', ',', '東', '京', '!']
    """
    return _WORD.findall(key.casefold())


def similarity(words: Sequence[Hashable], others: Sequence[Hashable]) -> float:
    """Return 1 less the edit distance over the length of the longer text.

    >>> similarity("a dog sleeps here".split(), "a cat sleeps here".split())
    0.75
    """
    return 1 - edit_distance(words, others) / max(len(words), len(others), 1)
