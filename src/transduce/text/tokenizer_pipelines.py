"""Tokenizer pipelines: the pre-tokenizer and the decoder around a subword or word-level model.

Byte-level pipelines split text into words and encode them in the byte-level alphabet. A word includes the space before
it; to encode the first word like any other, encoding prepends a space and decoding removes it.

How text is split into words has versions; the file of a tokenizer contains its own. In the first, which knows letters
only, a combining mark ended a word: no word of Hindi could be a token. In the second, marks belong to their word.
"""

from __future__ import annotations

from typing import Any, Literal, assert_never

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as LibraryTokenizer

__all__ = [
    "CONTINUATION", "MAX_WORD_BYTES", "WORD_VERSIONS", "WordVersion", "byte_level_pipeline", "whitespace_pipeline",
]  # fmt: skip

CONTINUATION = "…"  # prefix of a WordPiece inside a word; not in the byte-level alphabet
MAX_WORD_BYTES = 64  # WordPiece splits longer words: the library tries every end, in quadratic time

WordVersion = Literal[1, 2]
WORD_VERSIONS: tuple[WordVersion, ...] = (1, 2)

# An English ending, a word with its marks and joiners, a number, other signs; each with the space before it. But for
# the marks, these are the words of version 1, which the library has built in.
_WORD = (
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}[\p{L}\p{M}\u200c\u200d]*| ?\p{N}+"
    r"| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
).replace(r"\u200c\u200d", "\u200c\u200d")  # the characters: not every reader of the file knows such escapes
_INSIDE_CHARACTER = "Ģ-Ń¡-¬®-¿"  # the bytes 0x80 to 0xBF in the byte-level alphabet


def byte_level_pipeline(model: models.BPE | models.WordPiece, version: WordVersion = 2) -> LibraryTokenizer:
    """Return ``model`` with byte-level pre-tokenization: words, each with the space before it, as UTF-8 bytes."""
    tokenizer = LibraryTokenizer(model)
    tokenizer.normalizer = normalizers.Prepend(" ")
    steps: list[Any]
    if version == 1:
        steps = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    else:
        words = pre_tokenizers.Split(Regex(_WORD), behavior="isolated")
        steps = [words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    to_text, strip_space = decoders.ByteLevel(), decoders.Strip(" ", left=1, right=0)
    match model:
        case models.BPE():
            tokenizer.decoder = decoders.Sequence([to_text, strip_space])
        case models.WordPiece():
            whole = MAX_WORD_BYTES if version == 1 else MAX_WORD_BYTES - 3  # and the rest of a character
            rest = "" if version == 1 else f"[{_INSIDE_CHARACTER}]{{0,3}}"
            steps.append(pre_tokenizers.Split(Regex(f".{{1,{whole}}}{rest}"), behavior="isolated"))
            tokenizer.decoder = decoders.Sequence([decoders.Replace(CONTINUATION, ""), to_text, strip_space])
        case _:
            assert_never(model)
    tokenizer.pre_tokenizer = steps[0] if len(steps) == 1 else pre_tokenizers.Sequence(steps)
    return tokenizer


def whitespace_pipeline(model: models.WordLevel) -> LibraryTokenizer:
    """Return ``model`` with whitespace pre-tokenization; decoding joins tokens with a space."""
    tokenizer = LibraryTokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer
