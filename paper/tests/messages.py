"""What a message says, told by its facts: a rewording leaves a test green, a lost name or number makes it red."""

from __future__ import annotations

import re
from collections import Counter


def naming(*facts: object) -> str:
    """A pattern for a message of one line that has every fact as a word of its own, in any order.

    A fact given twice must be there twice.

    >>> [bool(re.search(naming("B-h2"), line)) for line in ("row B-h2,", "row B-h20", "B-h2\\nB-h4")]
    [True, False, False]
    """
    words = {rf"(?<![\w.]){re.escape(str(fact))}(?![.,]?\w)": n for fact, n in Counter(facts).items()}
    return r"\A(?!.*\n)" + "".join(f"(?=(?:.*{word}){{{n}}})" for word, n in words.items())


def says(text: str, *facts: object) -> bool:
    """Whether one of the lines of a text has every fact."""
    return any(re.search(naming(*facts), line) for line in text.splitlines())
