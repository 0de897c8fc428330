"""Insertion of what a translation lacks at its relative place in the source."""

from __future__ import annotations

import re
from collections import Counter

from transduce.patterns import compiled_on_use
from transduce.text.punctuation import SENTENCE_ENDS

__all__ = ["END_MARKS", "insert_missing"]

END_MARKS = compiled_on_use(rf"(?<![\s{SENTENCE_ENDS}])[\s{SENTENCE_ENDS}]*+$")
_BOUNDARY = compiled_on_use(r"\s|(?<=[、，；：。！？])")
MAX_SIGNS = 4  # between two tokens that are side by side: "1), (2"
MAX_INSERTED = 100  # by source position, each in linear time; the rest are appended


def insert_missing(text: str, source: str, tokens: re.Pattern[str], *, in_order: bool = True) -> str:
    """Insert the tokens of ``source`` that ``text`` lacks; ``tokens`` matches them, each one character.

    A token goes between those that are before and after it in the source, at the word boundary nearest to its relative
    place; not beside another, with which it might look like one number, unless it is so in the source or no place is
    left. Not ``in_order``: the whole text is such a place.

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
                last = min(following, default=len(text))
                if not in_order:
                    first, last = 0, len(text)
                is_apart = not _is_beside(source, match.start(), match.end(), tokens)
                text = _insert(text, token, match.start() / len(source), first, last, tokens if is_apart else None)
            else:
                appended.append(f" {token}")
        earlier.add(token)
    return text + "".join(appended)


def _insert(text: str, token: str, fraction: float, first: int, last: int, others: re.Pattern[str] | None) -> str:
    """Insert a token at the word boundary nearest to ``fraction`` of the length, between ``first`` and ``last``.

    Not beside one of ``others``, if there is such a place.
    """
    end = END_MARKS.search(text)
    assert end is not None
    boundaries = [0, *(match.start() for match in _BOUNDARY.finditer(text)), end.start()]
    candidates = [boundary for boundary in boundaries if first <= boundary <= last] or [first]
    if others is not None:
        candidates = [each for each in candidates if not _is_beside(text, each, each, others)] or candidates
    index = min(candidates, key=lambda each: abs(each - fraction * len(text)))
    before = " " if index and not text[index - 1].isspace() else ""
    after = " " if index < end.start() and not text[index].isspace() else ""
    return f"{text[:index]}{before}{token}{after}{text[index:]}"


def _is_beside(text: str, start: int, end: int, tokens: re.Pattern[str]) -> bool:
    """Whether only few signs, and no word, are between a place of a text and one of the tokens."""
    for side in (reversed(text[max(0, start - MAX_SIGNS) : start]), text[end : end + MAX_SIGNS]):
        nearest = next((each for each in side if tokens.match(each) or each.isalnum()), "")
        if tokens.match(nearest):
            return True
    return False
