"""The tokenizers of a run: those of the model that it starts from, or new ones of the configured kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, assert_never

from transduce.config import DataConfig, PairsData, ParallelData
from transduce.errors import ConfigError
from transduce.inference.folder import read_tokenizers
from transduce.text import Tokenizer, Tokenizers, byte_tokenizer, train_bpe, train_characters, train_wordpiece
from transduce.text.alphabet import n_character_merges

__all__ = ["tokenizer_trainer", "tokenizers_of_model"]


def tokenizers_of_model(config: DataConfig) -> Tokenizers | None:
    """Return the tokenizers of the model folder that ``config`` names, or None.

    Raises CheckpointError if it cannot be used, ConfigError if they do not fit ``masks``, ``terms`` or ``bpe_dropout``.
    """
    if config.tokenizer_from is None:
        return None
    tokenizers = read_tokenizers(Path(config.tokenizer_from))
    has_masks, has_terms = _has(config, "masks"), _has(config, "terms")
    if tokenizers.src.has_masks != has_masks:
        raise ConfigError(
            f"the tokenizer of {config.tokenizer_from} was trained {'with' if tokenizers.src.has_masks else 'without'}"
            f" masks; set data.masks = {str(tokenizers.src.has_masks).lower()}"
        )
    if tokenizers.src.has_term_marks != has_terms:
        raise ConfigError(
            f"the tokenizer of {config.tokenizer_from} has {'' if tokenizers.src.has_term_marks else 'no '}term marks;"
            f" set data.terms = {str(tokenizers.src.has_term_marks).lower()}"
        )
    merges = tokenizers.src.merges or ()
    if isinstance(config, PairsData) and config.bpe_dropout and n_character_merges(merges) == len(merges):
        raise ConfigError(f"data.bpe_dropout needs a BPE tokenizer; that of {config.tokenizer_from} merges nothing")
    return tokenizers


def _has(config: DataConfig, marks: Literal["masks", "terms"]) -> bool:
    return isinstance(config, ParallelData) and {"masks": config.masks, "terms": config.terms}[marks]


def tokenizer_trainer(config: DataConfig, *, extra_tokens: Sequence[str] = ()) -> Callable[[Iterable[str]], Tokenizer]:
    """Return the function that trains a tokenizer of the configured kind and size. Section 5.1.

    ``extra_tokens`` are the last ids of its vocabulary.
    """
    match config.tokenizer:
        case "bpe" | "wordpiece" as kind:
            return partial(
                {"bpe": train_bpe, "wordpiece": train_wordpiece}[kind],
                vocab_size=config.vocab_size,
                masks=_has(config, "masks"),
                term_marks=_has(config, "terms"),
                alphabet=config.alphabet,
                min_pair_count=config.min_pair_count,
                extra_tokens=extra_tokens,
            )
        case "characters":
            min_count = config.min_pair_count or 1
            return partial(
                train_characters, vocab_size=config.vocab_size, min_count=min_count, extra_tokens=extra_tokens
            )
        case "bytes":
            return lambda texts: byte_tokenizer(extra_tokens=extra_tokens)
        case never:
            assert_never(never)
