"""Word-level vocabulary: a closed list of whitespace-separated tokens, for linearised trees. One token, one id."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import models

from transduce.errors import DataError
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_pipelines import whitespace_pipeline
from transduce.text.vocabulary import NO_TEXT, SPECIAL_TOKENS, UNK_ID

__all__ = ["train_word_level"]


def train_word_level(texts: Iterable[str]) -> Tokenizer:
    """Return a tokenizer of the 4 special tokens and all tokens of ``texts``, sorted.

    Any other token is encoded as ``<unk>``. Raises DataError if the texts have no token, or one with the name of a
    special token.

    >>> tokenizer = train_word_level(["(S XX )S"])
    >>> tokenizer.encode("(S (NP XX )S"), tokenizer.decode([6, 5])
    ([4, 3, 6, 5], 'XX )S')
    """
    tokens = sorted({token for text in texts for token in text.split()})
    if not tokens:
        raise DataError(NO_TEXT)
    if reserved := set(tokens) & set(SPECIAL_TOKENS):
        raise DataError(f"the tag {min(reserved)} has the name of a special token; rename it in the trees")
    vocabulary = {token: id for id, token in enumerate([*SPECIAL_TOKENS, *tokens])}
    return Tokenizer(whitespace_pipeline(models.WordLevel(vocabulary, unk_token=SPECIAL_TOKENS[UNK_ID])).to_str())
