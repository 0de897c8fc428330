"""How alike two texts are: by the words that must be changed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from transduce.patterns import compiled_on_use
from transduce.text.characters import SPACELESS

__all__ = ["compared_words", "edit_distance", "similarity"]


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


def edit_distance(words: Sequence[Hashable], others: Sequence[Hashable]) -> int:
    """Return how many words must be replaced, left out or put in, to make one text of the other.

    A column of the table of distances is two numbers, whose bits say where it rises and where it falls (Hyyrö, 2003).

    >>> edit_distance("one two three four".split(), "two three five four six".split())
    3
    """
    if not words:
        return len(others)
    places = dict[Hashable, int]()
    for place, word in enumerate(words):
        places[word] = places.get(word, 0) | 1 << place
    all_places, last = (1 << len(words)) - 1, 1 << len(words) - 1
    rises, falls, distance = all_places, 0, len(words)
    for word in others:
        equal = places.get(word, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls
        up, down = falls | ~(diagonal | rises), rises & diagonal
        distance += bool(up & last) - bool(down & last)
        up = up << 1 | 1
        rises = (down << 1 | ~(diagonal | up)) & all_places
        falls = up & diagonal & all_places
    return distance
