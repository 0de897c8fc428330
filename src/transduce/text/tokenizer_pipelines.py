"""Tokenizer pipelines: the pre-tokenizer and the decoder around a subword or word-level model.

Byte-level pipelines split text into words and encode them in the byte-level alphabet. A word includes the space before
it; to encode the first word like any other, encoding prepends a space and decoding removes it.
"""

from __future__ import annotations

from typing import assert_never

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as LibraryTokenizer

__all__ = ["CONTINUATION", "MAX_WORD_BYTES", "byte_level_pipeline", "whitespace_pipeline"]

CONTINUATION = "…"  # prefix of a WordPiece inside a word; not in the byte-level alphabet
MAX_WORD_BYTES = 64  # WordPiece splits longer words: the library tries every end, in quadratic time


def byte_level_pipeline(model: models.BPE | models.WordPiece) -> LibraryTokenizer:
    """Return ``model`` with byte-level pre-tokenization: words, each with the space before it, as UTF-8 bytes."""
    tokenizer = LibraryTokenizer(model)
    tokenizer.normalizer = normalizers.Prepend(" ")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    to_text, strip_space = decoders.ByteLevel(), decoders.Strip(" ", left=1, right=0)
    match model:
        case models.BPE():
            tokenizer.pre_tokenizer = byte_level
            tokenizer.decoder = decoders.Sequence([to_text, strip_space])
        case models.WordPiece():
            split_long = pre_tokenizers.Split(Regex(f".{{1,{MAX_WORD_BYTES}}}"), behavior="isolated")
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([byte_level, split_long])
            tokenizer.decoder = decoders.Sequence([decoders.Replace(CONTINUATION, ""), to_text, strip_space])
        case _:
            assert_never(model)
    return tokenizer


def whitespace_pipeline(model: models.WordLevel) -> LibraryTokenizer:
    """Return ``model`` with whitespace pre-tokenization; decoding joins tokens with a space."""
    tokenizer = LibraryTokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer
