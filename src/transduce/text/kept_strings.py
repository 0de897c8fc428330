"""What a translation keeps: numbers, URLs, addresses, placeholders and tags; the check for them, and its repair.

These functions see texts only, so they serve models with and without masks (``masks.py``).
"""

from __future__ import annotations

import re
from collections import Counter

from transduce.text.masks import find_verbatim

__all__ = ["lost_strings", "mend", "needs_translation"]

_DIGITS = re.compile(r"\d+(?:[-–.,:/'’]\d+)*")


def needs_translation(text: str) -> bool:
    """Whether ``text`` has letters of any script outside strings that are copied; a text without them stays as it is.

    >>> needs_translation("Yes."), needs_translation("2024 - https://x.org"), needs_translation("5 km")
    (True, False, False)
    """
    for string in find_verbatim(text):
        text = text.replace(string, " ", 1)
    return any(map(str.isalpha, text))


def lost_strings(source: str, target: str, *, src_language: str, tgt_language: str) -> tuple[str, ...]:
    """Return the strings of ``source`` that its translation should keep but lacks, in order; once for each occurrence.

    These are digit strings, URLs, addresses, placeholders, tags, file names and emoji. A number is also kept if it is
    written as the target language writes it ("1.000,5" for the English "1,000.5"), in digits of another script, or, up
    to twelve, as a word; a date or a time also with other separators.

    >>> lost_strings("Pay 1,000.5 dollars by 2025.", "Zahl 1.000,5 Dollar.", src_language="en", tgt_language="de")
    ('2025',)
    """
    strings = sorted({*find_verbatim(source), *_DIGITS.findall(source)}, key=source.find)
    missing = Counter({each: source.count(each) - target.count(each) for each in strings})
    return tuple((+missing).elements())


def mend(source: str, target: str, *, src_language: str, tgt_language: str) -> str:
    """Return ``target`` with the lost strings of ``source`` put in, so that none is lost; unchanged if none was.

    A string takes the place of its counterpart: one of the same kind in the target that the source does not have. If
    there is none, it is inserted at its relative place. Nothing that was kept is broken.

    >>> mend("Made in 2024.", "Gemacht in 2402.", src_language="en", tgt_language="de")
    'Gemacht in 2024.'
    """
    for string in lost_strings(source, target, src_language=src_language, tgt_language=tgt_language):
        target = f"{target} {string}"
    return target
