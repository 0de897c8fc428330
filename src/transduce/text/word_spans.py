"""Words and punctuation marks of a text, as people point at them: independent of any vocabulary."""

from __future__ import annotations

import re

__all__ = ["word_spans"]

# Single characters of scripts without spaces, words, punctuation marks.
_WORD = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    r"|[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]|_"
)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each word and punctuation mark.

    >>> text = "Don't go, 東京!"
    >>> [text[start:end] for start, end in word_spans(text)]
    ["Don't", 'go', ',', '東', '京', '!']
    """
    return [match.span() for match in _WORD.finditer(text)]
