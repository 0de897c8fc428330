"""The one form of a text that tokenizers are trained on and fed with."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

__all__ = ["normalise"]

# To put n marks on one letter in order takes n * n steps. No language has so many; a line of a megabyte can.
MOST_MARKS, MARKS_KEPT_TOGETHER = 64, 30
JOINER = "\u034f"  # the combining grapheme joiner: no mark itself, and not to be seen

_SURROGATE = re.compile("[\ud800-\udfff]")


def normalise(text: str) -> str:
    """``text`` in Unicode's composed form (NFC), each run of whitespace made one space, none at the ends.

    Whitespace is all that Unicode calls so: tabs, line ends, control separators, the no-break space, U+2028. The result
    is therefore always one line, and normalising it again changes nothing.

    Some text is no text, and is dealt with so that every string can go on: NUL is removed; a surrogate without its
    partner becomes U+FFFD, the replacement character (two that belong together become their character); a run of more
    than 64 combining marks is cut by U+034F, as in the stream-safe format of Unicode's annex 15.

    >>> normalise("  Ein\\u00a0Ma\\u0308dchen\\tlacht.\\u2028")
    'Ein Mädchen lacht.'
    """
    text = text.replace("\0", "")
    if not text.isascii():
        if _SURROGATE.search(text):
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        text = _composed(text)
    return " ".join(text.split())


def _composed(text: str) -> str:
    """NFC, in time that grows with the text alone."""
    text = _cut_marks(text)
    while True:
        composed = unicodedata.normalize("NFC", text)
        text = _cut_marks(composed)  # some characters are taken apart, and a run may have grown
        if text == composed:
            return text


def _cut_marks(text: str) -> str:
    some = text[MOST_MARKS :: MOST_MARKS + 1]  # whatever is longer than MOST_MARKS has a part here
    return _many_marks().sub(_cut, text) if any(map(unicodedata.combining, some)) else text


def _cut(run: re.Match[str]) -> str:
    marks = run[0]
    return JOINER.join(marks[n : n + MARKS_KEPT_TOGETHER] for n in range(0, len(marks), MARKS_KEPT_TOGETHER))


@cache
def _many_marks() -> re.Pattern[str]:
    marks = "".join(filter(unicodedata.combining, map(chr, range(0x300, sys.maxunicode + 1))))
    return re.compile(f"[{marks}]{{{MOST_MARKS + 1},}}")
