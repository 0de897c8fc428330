"""Byte-level WordPiece: the English-French vocabulary of section 5.1, trained by likelihood. Lossless.

Pieces inside a word have a continuation prefix, which distinguishes them from the same letters at the start of a word.
Encoding is greedy: from left to right, the longest matching piece.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models, pre_tokenizers

from transduce.errors import ConfigError, DataError
from transduce.text.masks import MASKS
from transduce.text.tokenizer import Tokenizer, to_byte_level
from transduce.text.tokenizer_pipelines import CONTINUATION, MAX_WORD_BYTES, byte_level_pipeline
from transduce.text.vocabulary import NO_TEXT, SPECIAL_TOKENS, UNK_ID
from transduce.text.wordpiece_trainer import learn_pieces

__all__ = ["train_wordpiece"]


def train_wordpiece(texts: Iterable[str], *, vocab_size: int, masks: bool = False) -> Tokenizer:
    """Train a WordPiece tokenizer of ``vocab_size`` ids: 4 special tokens, 2 * 256 bytes, merged pieces. Section 5.1.

    Each byte is a piece at the start of a word and one inside a word. The normalised texts are read once, as a stream.
    Training (``wordpiece_trainer.py``) is deterministic; if too few pairs of pieces occur twice, the vocabulary
    is smaller. With ``masks``, each mask (``masks.py``) is a piece, at the start of a word and inside.

    Raises ConfigError if ``vocab_size`` is below 516, DataError if all texts are empty.

    >>> tokenizer = train_wordpiece(["low lower low"], vocab_size=10_000)
    >>> tokenizer.size, tokenizer.pieces(range(516, tokenizer.size))
    (519, ['▁l', 'ow', '▁low'])
    """
    pieces = _alphabet()
    mask_pieces = [prefix + to_byte_level(mask) for mask in MASKS for prefix in ("", CONTINUATION)] if masks else []
    smallest = len(SPECIAL_TOKENS) + len(pieces) + len(mask_pieces)
    if vocab_size < smallest:
        raise ConfigError(
            f"vocab_size must be at least {smallest} (4 special tokens, 256 bytes, "
            f"{f'{len(MASKS)} masks, ' if masks else ''}each at the start of a word and inside), got {vocab_size}"
        )
    word_counts = _count_words(texts)
    if not word_counts:
        raise DataError(NO_TEXT)
    n_pieces = vocab_size - len(SPECIAL_TOKENS) - len(mask_pieces)
    pieces = learn_pieces(word_counts, alphabet=pieces, n_pieces=n_pieces)
    return Tokenizer(_library(list(dict.fromkeys([*pieces, *mask_pieces]))).to_str())


def _alphabet() -> list[str]:
    characters = sorted(pre_tokenizers.ByteLevel.alphabet())
    return [*characters, *(CONTINUATION + character for character in characters)]


def _count_words(texts: Iterable[str]) -> Counter[str]:
    """Count the pre-tokenized words, split as ``Tokenizer.encode`` splits them."""
    library = _library(_alphabet())
    counts: Counter[str] = Counter()
    for text in texts:
        words = library.pre_tokenizer.pre_tokenize_str(library.normalizer.normalize_str(text))
        counts.update(word for word, _ in words)
    return counts


def _library(pieces: Sequence[str]) -> LibraryTokenizer:
    """Return a byte-level WordPiece tokenizer with the special tokens and ``pieces``."""
    return byte_level_pipeline(
        models.WordPiece(
            vocab={piece: id for id, piece in enumerate([*SPECIAL_TOKENS, *pieces])},
            unk_token=SPECIAL_TOKENS[UNK_ID],
            continuing_subword_prefix=CONTINUATION,
            max_input_chars_per_word=MAX_WORD_BYTES,
        )
    )
