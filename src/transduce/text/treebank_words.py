"""Raw text as treebanks cut it into words, by nltk's rules."""

from __future__ import annotations

from functools import cache
from typing import Any

from transduce.errors import ConfigError

__all__ = ["treebank_words"]


def treebank_words(sentence: str) -> list[str]:
    """The words of an English sentence as the Penn Treebank cuts them: ``don't`` is two, quotation marks are ``.

    Raises ConfigError if nltk is not installed.

    >>> treebank_words('He said, "I don\\'t know (yet)."')
    ['He', 'said', ',', '``', 'I', 'do', "n't", 'know', '(', 'yet', ')', '.', "''"]
    """
    words: list[str] = _tokenizer().tokenize(sentence)
    return words


@cache
def _tokenizer() -> Any:
    try:
        from nltk.tokenize.destructive import NLTKWordTokenizer
    except ImportError as error:
        raise ConfigError("raw text is cut into words by nltk, which is not here; install transduce[raw]") from error
    return NLTKWordTokenizer()
