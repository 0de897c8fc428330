"""Text normalisation, applied before a tokenizer is trained or used."""

from __future__ import annotations

import re

from transduce.composition import composed

__all__ = ["composed", "normalise", "without_surrogates"]

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
