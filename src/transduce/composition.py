"""Unicode's form NFC, in linear time."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

__all__ = ["composed"]

# Ordering n combining marks takes n * n steps. No language has long runs of marks on a letter, but bad input may.
MAX_MARKS, MARKS_BETWEEN_JOINERS = 64, 30
JOINER = "\u034f"  # combining grapheme joiner: invisible, combining class 0


def composed(text: str) -> str:
    """Return ``text`` in NFC.

    U+034F splits a run of more than 64 combining marks, as in the stream-safe text format of Unicode Standard Annex 15.

    >>> composed("Ma\\u0308dchen") == "M\\xe4dchen"
    True
    """
    if text.isascii():
        return text
    text = _split_marks(text)
    while True:
        result = unicodedata.normalize("NFC", text)
        text = _split_marks(result)  # NFC decomposes some characters, which may lengthen a run
        if text == result:
            return text


def _split_marks(text: str) -> str:
    sampled = text[MAX_MARKS :: MAX_MARKS + 1]  # has a character of every run longer than MAX_MARKS
    return _long_runs().sub(_insert_joiners, text) if any(map(unicodedata.combining, sampled)) else text


def _insert_joiners(run: re.Match[str]) -> str:
    marks = run[0]
    return JOINER.join(marks[n : n + MARKS_BETWEEN_JOINERS] for n in range(0, len(marks), MARKS_BETWEEN_JOINERS))


@cache
def _long_runs() -> re.Pattern[str]:
    marks = "".join(filter(unicodedata.combining, map(chr, range(0x300, sys.maxunicode + 1))))
    return re.compile(f"[{marks}]{{{MAX_MARKS + 1},}}")
