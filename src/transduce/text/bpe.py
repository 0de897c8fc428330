"""Byte-level byte-pair encoding (BPE): the English-German vocabulary of section 5.1. Lossless."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain

from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models, pre_tokenizers, trainers

from transduce.errors import ConfigError, DataError
from transduce.text.masks import MASKS
from transduce.text.tokenizer import Tokenizer, to_byte_level
from transduce.text.tokenizer_pipelines import byte_level_pipeline
from transduce.text.vocabulary import NO_TEXT, SPECIAL_TOKENS

__all__ = ["train_bpe"]

N_BYTES = 256
MAX_TEXT_CHARACTERS = 5000  # for training; time grows with the square of the length of a word
MIN_PAIR_COUNT = 2  # a pair seen once does not generalise


def train_bpe(texts: Iterable[str], *, vocab_size: int, masks: bool = False) -> Tokenizer:
    """Train a BPE tokenizer of ``vocab_size`` ids: 4 special tokens, 256 bytes, the most frequent merges. Section 5.1.

    The normalised texts are read once, as a stream. Training is deterministic; with too few pairs that occur twice,
    the vocabulary is smaller. Texts of more than 5,000 characters (which cleaning drops by default) are split. With
    ``masks``, each mask (``masks.py``) is a token, made by merges that rank before all learned ones.

    Raises ConfigError if ``vocab_size`` is below 260, DataError if all texts are empty.

    >>> tokenizer = train_bpe(["low lower low"], vocab_size=10_000)
    >>> tokenizer.size, tokenizer.pieces(range(260, tokenizer.size))
    (263, ['lo', '▁lo', '▁low'])
    """
    first_merges = _merges_of_masks() if masks else []
    smallest = len(SPECIAL_TOKENS) + N_BYTES + len(first_merges)
    if vocab_size < smallest:
        parts = f"4 special tokens, 256 bytes{f', {len(first_merges)} for masks' if masks else ''}"
        raise ConfigError(f"vocab_size must be at least {smallest} ({parts}), got {vocab_size}")
    stream = iter(texts)
    first = next((text for text in stream if text), None)
    if first is None:
        raise DataError(NO_TEXT)
    library = byte_level_pipeline(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(SPECIAL_TOKENS) - len(first_merges),
        min_frequency=MIN_PAIR_COUNT,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[],
        show_progress=False,
    )
    library.train_from_iterator(chain.from_iterable(map(_split_long, chain([first], stream))), trainer)
    return Tokenizer(_with_special_tokens(library, first_merges).to_str())


def _split_long(text: str) -> list[str]:
    return [text[start : start + MAX_TEXT_CHARACTERS] for start in range(0, len(text), MAX_TEXT_CHARACTERS)]


def _merges_of_masks() -> list[tuple[str, str]]:
    """Return the merges that make each mask a token: its first two bytes, equal in all masks, then the third."""
    masks = list(map(to_byte_level, MASKS))
    return [(masks[0][0], masks[0][1]), *((mask[:2], mask[2]) for mask in masks)]


def _with_special_tokens(learned: LibraryTokenizer, first_merges: list[tuple[str, str]]) -> LibraryTokenizer:
    """Return the learned model with the special tokens at ids 0 to 3 and with ``first_merges`` before its own.

    Special tokens are not passed to the trainer: it would register them with the library, which matches registered
    tokens in the user's text and drops them in decoding.
    """
    model = json.loads(learned.to_str())["model"]
    vocabulary = {token: id for id, token in enumerate(SPECIAL_TOKENS)}
    vocabulary |= {token: id + len(SPECIAL_TOKENS) for token, id in model["vocab"].items()}
    for left, right in first_merges:
        vocabulary.setdefault(left + right, len(vocabulary))
    merges = [*first_merges, *((left, right) for left, right in model["merges"])]
    return byte_level_pipeline(models.BPE(vocab=vocabulary, merges=list(dict.fromkeys(merges))))
