"""What a message says, told by its facts: a rewording leaves a test green, a lost name or number makes it red."""

from __future__ import annotations

import re
from collections import Counter


def naming(*facts: object) -> str:
    """A pattern for a message of one line that has every fact as a word of its own, in any order.

    A fact given twice must be there twice; one that is a compiled pattern is taken as it stands.

    >>> bool(re.search(naming("train.tsv", 2), "train.tsv:2 has 3 columns"))
    True
    >>> [bool(re.search(naming(2), line)) for line in ("line 12", "2.5 of all", "line 2,", "line 2\\nline 3")]
    [False, False, True, False]
    """
    counts = Counter(map(_as_word, facts))
    return r"\A(?!.*\n)" + "".join(f"(?=(?:.*{word}){{{count}}})" for word, count in counts.items())


def says(text: str, *facts: object) -> bool:
    """Whether one of the lines of a text has every fact.

    >>> says("warning: 3 lines\\nerror: line 4", 3), says("warning: 3 lines\\nerror: line 4", 3, 4)
    (True, False)
    """
    return any(re.search(naming(*facts), line) for line in text.splitlines())


def _as_word(fact: object) -> str:
    if isinstance(fact, re.Pattern):
        return f"(?:{fact.pattern})"
    text = str(fact)
    before = r"(?<!\w)(?<!\d[.,])" if re.match(r"\w", text) else ""
    after = r"(?!\w)(?![.,]\d)" if re.search(r"\w\Z", text) else ""
    return f"{before}{re.escape(text)}{after}"
