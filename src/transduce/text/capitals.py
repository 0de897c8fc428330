"""Sentences in capitals, which a model reads in lower case: few training texts have any."""

from __future__ import annotations

import re

from transduce.patterns import compiled_on_use

__all__ = ["is_all_caps", "to_capitals", "to_sentence_case"]

_WORD = compiled_on_use(r"[^\W_]+(?:-[^\W_]+)*")
MIN_CAPITALS = 6  # letters that a text in capitals has at least
MIN_UPPER = 0.9  # of its letters; others are of scripts without case
_DOTTED_I = ("az", "tr")  # languages in which "i" and "İ" are a pair, and "ı" and "I"


def is_all_caps(text: str) -> bool:
    """Whether ``text`` is a sentence in capitals: several words, and hardly a letter that is not upper-case.

    >>> [is_all_caps(each) for each in ("READ THIS FIRST!", "NATO", "The USA", "使用 GPU 和 CPU 训练模型")]
    [True, False, False, False]
    """
    if text.upper() != text or text.lower() == text:
        return False
    letters = list(filter(str.isalpha, text))
    if sum(map(str.isupper, letters)) < MIN_UPPER * len(letters):
        return False
    words = [word for word in _WORD.findall(text) if sum(map(str.isupper, word)) > 1]
    return len(words) > 1 and sum(map(len, words)) >= MIN_CAPITALS


def to_sentence_case(text: str, language: str) -> str:
    """Return a text in capitals in lower case, with the first letter (and the English "I") capitalised.

    >>> to_sentence_case("DO I KNOW YOU?", "en"), to_sentence_case("IŞIK İYİ", "tr")
    ('Do I know you?', 'Işık iyi')
    """
    lowered = (text.replace("I", "ı").replace("İ", "i") if _has_dotted_i(language) else text).lower()
    if language.partition("-")[0] == "en":
        lowered = re.sub(r"\bi\b", "I", lowered)
    first = next((index for index, letter in enumerate(lowered) if letter.isalpha()), 0)
    return lowered[:first] + to_capitals(lowered[first : first + 1], language) + lowered[first + 1 :]


def to_capitals(text: str, language: str) -> str:
    """Return ``text`` in capitals.

    >>> to_capitals("iki kız", "tr"), to_capitals("iki kız", "en")
    ('İKİ KIZ', 'IKI KIZ')
    """
    return (text.replace("i", "İ") if _has_dotted_i(language) else text).upper()


def _has_dotted_i(language: str) -> bool:
    return re.split("[-_]", language.lower(), maxsplit=1)[0] in _DOTTED_I
