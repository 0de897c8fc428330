"""Insertion of what a translation lacks at its relative place in the source."""

from __future__ import annotations

import re
from collections import Counter

from transduce.text.punctuation import SENTENCE_ENDS

__all__ = ["END_MARKS", "insert_missing"]

END_MARKS = re.compile(rf"[\s{SENTENCE_ENDS}]*$")
_BOUNDARY = re.compile(r"\s|(?<=[、，；：。！？])")
MAX_INSERTED = 100  # by source position, each in linear time; the rest are appended


def insert_missing(text: str, source: str, tokens: re.Pattern[str]) -> str:
    """Insert the tokens of ``source`` that ``text`` lacks; ``tokens`` matches them, each one character.

    A token goes between those that are before and after it in the source, at the word boundary nearest to its relative
    place.

    >>> insert_missing("der Hund #2 schläft.", "the #1 dog #2 sleeps", re.compile("[12]"))
    'der 1 Hund #2 schläft.'
    """
    in_source = list(tokens.finditer(source))
    missing = Counter(match.group() for match in in_source) - Counter(tokens.findall(text))
    if not missing:
        return text
    earlier: set[str] = set()
    later = Counter(match.group() for match in in_source)
    n_inserted, appended = 0, []
    for match in in_source:
        token = match.group()
        later[token] -= 1
        if missing[token] > 0:
            missing[token] -= 1
            if n_inserted < MAX_INSERTED:
                n_inserted += 1
                in_text = [(each.start(), each.group()) for each in tokens.finditer(text)]
                first = max((position + 1 for position, each in in_text if each in earlier), default=0)
                following = (position for position, each in in_text if position >= first and later[each] > 0)
                text = _insert(text, token, match.start() / len(source), first, min(following, default=len(text)))
            else:
                appended.append(f" {token}")
        earlier.add(token)
    return text + "".join(appended)


def _insert(text: str, token: str, fraction: float, first: int, last: int) -> str:
    """Insert a token at the word boundary nearest to ``fraction`` of the length, between ``first`` and ``last``."""
    end = END_MARKS.search(text)
    assert end is not None
    boundaries = [0, *(match.start() for match in _BOUNDARY.finditer(text)), end.start()]
    candidates = [boundary for boundary in boundaries if first <= boundary <= last] or [first]
    index = min(candidates, key=lambda each: abs(each - fraction * len(text)))
    before = " " if index and not text[index - 1].isspace() else ""
    after = " " if index < end.start() and not text[index].isspace() else ""
    return f"{text[:index]}{before}{token}{after}{text[index:]}"
