"""Text normalisation, applied before a tokenizer is trained or used."""

from __future__ import annotations

import re

from transduce.composition import composed

__all__ = ["normalise"]

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
        if _SURROGATE.search(text):
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        text = composed(text)
    return " ".join(text.split())
