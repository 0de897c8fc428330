"""What stands round the model of a tokenizer: how text is cut on the way in, and put together on the way out.

Text of a language is cut into words, which are spelled in bytes. The first words of a text must be spelled as they are
elsewhere, with the space before them. So every text is given one space at its start, and loses one when it is decoded.
"""

from __future__ import annotations

from typing import assert_never

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as LibraryTokenizer

__all__ = ["CONTINUATION", "MAX_WORD_BYTES", "byte_level_pipeline", "whitespace_pipeline"]

CONTINUATION = "…"  # begins a WordPiece that goes on with a word; the byte-level alphabet does not have it
MAX_WORD_BYTES = 64  # WordPiece cuts longer words, since the library tries all ends


def byte_level_pipeline(model: models.BPE | models.WordPiece) -> LibraryTokenizer:
    """``model`` between bytes: words are cut with the space before them, then spelled as UTF-8."""
    tokenizer = LibraryTokenizer(model)
    tokenizer.normalizer = normalizers.Prepend(" ")
    spell = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    read, lose_a_space = decoders.ByteLevel(), decoders.Strip(" ", left=1, right=0)
    match model:
        case models.BPE():
            tokenizer.pre_tokenizer = spell
            tokenizer.decoder = decoders.Sequence([read, lose_a_space])
        case models.WordPiece():
            cut = pre_tokenizers.Split(Regex(f".{{1,{MAX_WORD_BYTES}}}"), behavior="isolated")
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([spell, cut])
            tokenizer.decoder = decoders.Sequence([decoders.Replace(CONTINUATION, ""), read, lose_a_space])
        case _:
            assert_never(model)
    return tokenizer


def whitespace_pipeline(model: models.WordLevel) -> LibraryTokenizer:
    """``model`` between blanks: text is cut at them, and put together with one between any two."""
    tokenizer = LibraryTokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer
