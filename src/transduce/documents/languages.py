"""Where formats name the language of their texts, and which languages are written from right to left."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from transduce.config import base_language

__all__ = ["NamingLanguage", "naming", "script_of", "with_language"]

NamingLanguage = Callable[[str, str], str]  # from a text and a language to the text that names it

_RIGHT_TO_LEFT = frozenset("ar arc azb ckb dv fa he iw ji ks lrc mzn nqo pnb ps sd syr ug ur yi".split())
_ASIAN = frozenset("ja ko zh yue".split())


def script_of(language: str) -> Literal["western", "asian", "complex"]:
    """Return which of the languages of a run its text has, as office formats divide them; complex: from right to left.

    >>> script_of("pt-BR"), script_of("zh-Hant"), script_of("ar")
    ('western', 'asian', 'complex')
    """
    base = base_language(language)
    return "complex" if base in _RIGHT_TO_LEFT else "asian" if base in _ASIAN else "western"


def naming(pattern: re.Pattern[str]) -> NamingLanguage:
    """Return what names a language where the groups of a pattern are."""
    return lambda text, language: with_language(text, pattern, language)


def with_language(text: str, pattern: re.Pattern[str], language: str) -> str:
    """Return a text with another language where the groups of a pattern are: its code, or code and country."""
    parts = [*language.split("-", 1), "none"][:2]

    def changed(match: re.Match[str]) -> str:
        values = parts if pattern.groups > 1 else [language]
        whole, offset = match[0], match.start()
        for group, value in reversed(list(enumerate(values, 1))):
            if match.start(group) >= 0:
                whole = whole[: match.start(group) - offset] + value + whole[match.end(group) - offset :]
        return whole

    return pattern.sub(changed, text)
