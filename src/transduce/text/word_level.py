"""A closed list of symbols between blanks: what a parser writes. Every symbol is one id, and there are no others."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import models

from transduce.errors import DataError
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_pipelines import whitespace_pipeline
from transduce.text.vocabulary import NO_TEXT, SPECIAL_TOKENS, UNK_ID

__all__ = ["train_word_level"]


def train_word_level(texts: Iterable[str]) -> Tokenizer:
    """The symbols of all texts, in the order of their names, after the 4 special ones.

    A symbol that was not in the texts is encoded as ``<unk>``. Raises DataError if there is no symbol, or one is named
    as a special one.

    >>> tokenizer = train_word_level(["(S XX )S"])
    >>> tokenizer.encode("(S (NP XX )S"), tokenizer.decode([6, 5])
    ([4, 3, 6, 5], 'XX )S')
    """
    found = sorted({token for text in texts for token in text.split()})
    if not found:
        raise DataError(NO_TEXT)
    if taken := set(found) & set(SPECIAL_TOKENS):
        raise DataError(f"a tag is called {min(taken)}, which has a meaning of its own; rename it in the trees")
    vocabulary = {token: id for id, token in enumerate([*SPECIAL_TOKENS, *found])}
    return Tokenizer(whitespace_pipeline(models.WordLevel(vocabulary, unk_token=SPECIAL_TOKENS[UNK_ID])).to_str())
