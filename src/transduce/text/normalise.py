"""The one form of a text that tokenizers are trained on and fed with."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["normalise"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def normalise(text: str) -> str:
    """``text`` in Unicode's composed form (NFC), each run of whitespace made one space, none at the ends.

    Whitespace is all that Unicode calls so: tabs, line ends, control separators, the no-break space, U+2028. The result
    is therefore always one line, and normalising it again changes nothing.

    Two kinds of character are no text, and are dealt with so that every string can go on: NUL is removed; a surrogate
    without its partner becomes U+FFFD, the replacement character (two that belong together become their character).

    >>> normalise("  Ein\\u00a0Ma\\u0308dchen\\tlacht.\\u2028")
    'Ein Mädchen lacht.'
    """
    text = text.replace("\0", "")
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return " ".join(unicodedata.normalize("NFC", text).split())
