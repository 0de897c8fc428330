"""Text normalisation, applied before a tokenizer is trained or used."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

__all__ = ["composed", "normalise", "without_surrogates"]

# Ordering n combining marks takes n * n steps. No language has long runs of marks on a letter, but bad input may.
MAX_MARKS, MARKS_BETWEEN_JOINERS = 64, 30
JOINER = "\u034f"  # combining grapheme joiner: invisible, combining class 0

_SURROGATE = re.compile("[\ud800-\udfff]")


def normalise(text: str) -> str:
    """Return ``text`` in NFC, with each run of whitespace replaced by one space and none at the ends.

    Whitespace is Unicode whitespace: tabs, line ends, control separators, the no-break space, U+2028. The result is one
    line; normalising is idempotent.

    Every string is accepted: NUL is removed; a lone surrogate becomes U+FFFD, the replacement character (a surrogate
    pair becomes its character); U+034F splits a run of more than 64 combining marks, as in the stream-safe text format
    of Unicode Standard Annex 15.

    >>> normalise("  Ein\\u00a0Ma\\u0308dchen\\tlacht.\\u2028")
    'Ein Mädchen lacht.'
    """
    text = text.replace("\0", "")
    if not text.isascii():
        text = composed(without_surrogates(text))
    return " ".join(text.split())


def without_surrogates(text: str) -> str:
    """Return ``text`` with U+FFFD for each lone surrogate, and their character for surrogate pairs.

    >>> without_surrogates("x\\ud800y")
    'x\ufffdy'
    """
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def composed(text: str) -> str:
    """Return ``text`` in NFC, in linear time."""
    text = _split_marks(text)
    while True:
        composed = unicodedata.normalize("NFC", text)
        text = _split_marks(composed)  # NFC decomposes some characters, which may lengthen a run
        if text == composed:
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
