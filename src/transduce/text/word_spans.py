"""Words and punctuation marks of a text, as people point at them: independent of any vocabulary."""

from __future__ import annotations

import re
from functools import cache

from transduce.text.characters import SPACELESS, marks
from transduce.text.verbatim import verbatim_spans

__all__ = ["word_spans"]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each word and punctuation mark; a string that is copied, such as a URL, is one word.

    >>> text = "Don't go, 東京! See https://x.org/y."
    >>> [text[start:end] for start, end in word_spans(text)]
    ["Don't", 'go', ',', '東', '京', '!', 'See', 'https://x.org/y', '.']
    """
    spans, position, pattern = list[tuple[int, int]](), 0, _word()
    for start, end in verbatim_spans(text):
        if text[start].isdigit() and len(text[start:end].split()) > 1:
            continue  # "12 km" are two words
        spans += [match.span() for match in pattern.finditer(text, position, start)]
        spans.append((start, end))
        position = end
    spans += [match.span() for match in pattern.finditer(text, position)]
    return spans


@cache
def _word() -> re.Pattern[str]:
    """Single characters of scripts without spaces, words, punctuation marks; each with its combining marks."""
    mark = f"[{marks()}\u200c\u200d]"
    letters = rf"[^\W_]+(?:{mark}+[^\W_]*)*"
    return re.compile(rf"[{SPACELESS}]{mark}*|{letters}(?:['’-]{letters})*|[^\w\s]{mark}*|_")
