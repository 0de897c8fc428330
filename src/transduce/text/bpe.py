"""Byte-pair encoding over bytes: the vocabulary of section 5.1, learned and used without loss."""

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
LONGEST_LEARNED = 5000  # characters; to learn from one word takes the square of its length
MIN_PAIR_COUNT = 2  # a pair seen once says nothing about other text


def train_bpe(texts: Iterable[str], *, vocab_size: int, masks: bool = False) -> Tokenizer:
    """Learn a vocabulary of ``vocab_size`` ids: 4 special symbols, 256 bytes, and the commonest merges. Section 5.1.

    The texts, as ``normalise`` returns them, are read once, as a stream. The same texts give the same tokenizer; where
    they hold too few pairs that occur twice, the vocabulary is smaller. Of texts above 5,000 characters, which cleaning
    drops by default, the learner sees parts. With ``masks``, each mask (``masks.py``) is a token, made by merges that
    come before all that is learned.

    Raises ConfigError if ``vocab_size`` is below 260, DataError if there is no text.

    >>> tokenizer = train_bpe(["low lower low"], vocab_size=10_000)
    >>> tokenizer.size, tokenizer.pieces(range(260, tokenizer.size))
    (263, ['lo', '▁lo', '▁low'])
    """
    first_merges = _merges_of_masks() if masks else []
    smallest = len(SPECIAL_TOKENS) + N_BYTES + len(first_merges)
    if vocab_size < smallest:
        parts = f"4 special symbols, 256 bytes{f', {len(first_merges)} for masks' if masks else ''}"
        raise ConfigError(f"vocab_size must be at least {smallest} ({parts}), got {vocab_size}")
    stream = iter(texts)
    first = next((text for text in stream if text), None)
    if first is None:
        raise DataError(NO_TEXT)
    learner = byte_level_pipeline(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(SPECIAL_TOKENS) - len(first_merges),
        min_frequency=MIN_PAIR_COUNT,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[],
        show_progress=False,
    )
    learner.train_from_iterator(chain.from_iterable(map(_parts, chain([first], stream))), trainer)
    return Tokenizer(_with_special_tokens(learner, first_merges).to_str())


def _parts(text: str) -> list[str]:
    return [text[start : start + LONGEST_LEARNED] for start in range(0, len(text), LONGEST_LEARNED)]


def _merges_of_masks() -> list[tuple[str, str]]:
    """The merges that make a token of each mask: two bytes that all have, and the third."""
    spelled = list(map(to_byte_level, MASKS))
    return [(spelled[0][0], spelled[0][1]), *((each[:2], each[2]) for each in spelled)]


def _with_special_tokens(learned: LibraryTokenizer, first_merges: list[tuple[str, str]]) -> LibraryTokenizer:
    """The learned model with the special symbols at ids 0 to 3, its own ids after them, and ``first_merges``.

    Given to the trainer, the symbols would be registered as special tokens: found inside the user's text, and dropped
    from it when it is decoded.
    """
    model = json.loads(learned.to_str())["model"]
    vocabulary = {token: id for id, token in enumerate(SPECIAL_TOKENS)}
    vocabulary |= {token: id + len(SPECIAL_TOKENS) for token, id in model["vocab"].items()}
    for left, right in first_merges:
        vocabulary.setdefault(left + right, len(vocabulary))
    merges = [*first_merges, *((left, right) for left, right in model["merges"])]
    return byte_level_pipeline(models.BPE(vocab=vocabulary, merges=list(dict.fromkeys(merges))))
