"""A closed list of symbols between blanks: what a parser writes. Every symbol is one id, and there are no others."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import models

from transduce.errors import DataError
from transduce.text.frames import between_blanks
from transduce.text.tokenizer import Tokenizer
from transduce.text.vocabulary import NO_TEXT, SPECIAL_SYMBOLS, UNK_ID

__all__ = ["train_symbols"]


def train_symbols(texts: Iterable[str]) -> Tokenizer:
    """The symbols of all texts, in the order of their names, after the 4 special ones.

    A symbol that was not in the texts is encoded as ``<unk>``. Raises DataError if there is no symbol, or one is named
    as a special one.

    >>> tokenizer = train_symbols(["(S XX )S"])
    >>> tokenizer.encode("(S (NP XX )S"), tokenizer.decode([6, 5])
    ([4, 3, 6, 5], 'XX )S')
    """
    found = sorted({symbol for text in texts for symbol in text.split()})
    if not found:
        raise DataError(NO_TEXT)
    if taken := set(found) & set(SPECIAL_SYMBOLS):
        raise DataError(f"a tag is called {min(taken)}, which has a meaning of its own; rename it in the trees")
    vocabulary = {symbol: id for id, symbol in enumerate([*SPECIAL_SYMBOLS, *found])}
    return Tokenizer(between_blanks(models.WordLevel(vocabulary, unk_token=SPECIAL_SYMBOLS[UNK_ID])).to_str())
