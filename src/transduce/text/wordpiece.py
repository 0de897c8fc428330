"""WordPiece over bytes: the other vocabulary of section 5.1, learned by likelihood and used without loss.

A piece inside a word is marked, so it is another piece than the same letters at the start of a word. A word is encoded
from its start, always with the longest piece that fits.
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
    """Learn a vocabulary of ``vocab_size`` ids: 4 special symbols, 256 bytes twice, and merged pieces. Section 5.1.

    Each byte is there as the start of a word and as a part inside it. The texts, as ``normalise`` returns them, are
    read once, as a stream. The same texts give the same tokenizer; where they hold too few pairs that occur twice, the
    vocabulary is smaller. ``likelihood.py`` says which pairs are merged. With ``masks``, each mask (``masks.py``) is a
    piece, at the start of a word and inside.

    Raises ConfigError if ``vocab_size`` is below 516, DataError if there is no text.

    >>> tokenizer = train_wordpiece(["low lower low"], vocab_size=10_000)
    >>> tokenizer.size, tokenizer.pieces(range(516, tokenizer.size))
    (519, ['▁l', 'ow', '▁low'])
    """
    pieces = _alphabet()
    of_masks = [mark + to_byte_level(token) for token in MASKS for mark in ("", CONTINUATION)] if masks else []
    smallest = len(SPECIAL_TOKENS) + len(pieces) + len(of_masks)
    if vocab_size < smallest:
        raise ConfigError(
            f"vocab_size must be at least {smallest} (4 special symbols, 256 bytes, "
            f"{f'{len(MASKS)} masks, ' if masks else ''}each at the start of a word and inside), got {vocab_size}"
        )
    word_counts = _count_words(texts)
    if not word_counts:
        raise DataError(NO_TEXT)
    n_pieces = vocab_size - len(SPECIAL_TOKENS) - len(of_masks)
    pieces = learn_pieces(word_counts, alphabet=pieces, n_pieces=n_pieces)
    return Tokenizer(_library(list(dict.fromkeys([*pieces, *of_masks]))).to_str())


def _alphabet() -> list[str]:
    tokens = sorted(pre_tokenizers.ByteLevel.alphabet())
    return [*tokens, *(CONTINUATION + token for token in tokens)]


def _count_words(texts: Iterable[str]) -> Counter[str]:
    """How often each word occurs, cut and spelled as it will be when text is encoded."""
    library = _library(_alphabet())
    counts: Counter[str] = Counter()
    for text in texts:
        words = library.pre_tokenizer.pre_tokenize_str(library.normalizer.normalize_str(text))
        counts.update(word for word, _ in words)
    return counts


def _library(pieces: Sequence[str]) -> LibraryTokenizer:
    """The longest of ``pieces`` first, between bytes."""
    return byte_level_pipeline(
        models.WordPiece(
            vocab={piece: id for id, piece in enumerate([*SPECIAL_TOKENS, *pieces])},
            unk_token=SPECIAL_TOKENS[UNK_ID],
            continuing_subword_prefix=CONTINUATION,
            max_input_chars_per_word=MAX_WORD_BYTES,
        )
    )
