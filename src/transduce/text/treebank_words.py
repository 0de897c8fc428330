"""Penn Treebank word tokenization of raw English text, with nltk."""

from __future__ import annotations

from functools import cache
from typing import Any

from transduce.imports import library

__all__ = ["treebank_words"]


def treebank_words(sentence: str) -> list[str]:
    """Return the Penn Treebank words of an English sentence: ``don't`` is two words, opening quotes become ``.

    Raises ConfigError if nltk is not installed.

    >>> treebank_words('He said, "I don\\'t know (yet)."')
    ['He', 'said', ',', '``', 'I', 'do', "n't", 'know', '(', 'yet', ')', '.', "''"]
    """
    words: list[str] = _tokenizer().tokenize(sentence)
    return words


@cache
def _tokenizer() -> Any:
    nltk = library("nltk.tokenize.destructive", needed_for="tokenizing raw text", extra="raw")
    return nltk.NLTKWordTokenizer()
