"""Texts over several lines of a width, in columns."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import east_asian_width

from transduce.patterns import compiled_on_use

__all__ = ["width_of", "wrap"]

_WIDE = r"\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff01-\uff60"
_WORD = compiled_on_use(rf"[{_WIDE}]\s*|[^\s{_WIDE}]*\s+|[^\s{_WIDE}]+")


def width_of(text: str) -> int:
    """Return the number of columns that a text takes."""
    return len(text) if text.isascii() else sum(1 + (east_asian_width(each) in "WF") for each in text)


def wrap(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a text; joined, they are the text again.

    >>> list(wrap("one two three", 8))
    ['one two ', 'three']
    """
    taken, n_taken = list[str](), 0
    for match in _WORD.finditer(text):
        n = width_of(match[0])
        if taken and n_taken + n > width:
            yield "".join(taken)
            taken, n_taken = [], 0
        taken.append(match[0])
        n_taken += n
    yield "".join(taken)
