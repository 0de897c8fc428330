"""Encoder self-attention between words, merged from the attention between subwords.

As in Clark et al. (2019) for BERT: attention to a word is the sum over its subwords, attention from a word their mean,
so that a row still sums to 1.

Shapes: B sentences, L layers, H heads, P subwords with EOS, S source positions (words with EOS).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.data import pad_rows, plan_by_length
from transduce.errors import CheckpointError
from transduce.inference import Translator
from transduce.model import AttentionKind, Transformer, make_model
from transduce.text import CONTINUATION, EOS_ID, SPECIAL_TOKENS, Tokenizer, normalise

__all__ = [
    "WordAttention", "attention_between_words", "lengths_of_words", "merge_subwords", "split_into_words", "untrained",
]  # fmt: skip

MAX_TOKENS = 4000

Weights = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class WordAttention:
    """The encoder self-attention of one sentence; ``weights[layer, head, i]`` is the row of query word ``i``."""

    words: tuple[str, ...]  # S, EOS last
    weights: Weights  # (L, H, S, S), rows sum to 1

    @property
    def n_words(self) -> int:
        """Number of words without EOS."""
        return len(self.words) - 1


def attention_between_words(translator: Translator, texts: Sequence[str]) -> list[WordAttention]:
    """Return the encoder self-attention of each text.

    Raises DataError if a text has no words, CheckpointError if the model is not a Transformer.
    """
    model, tokenizer = translator.model, translator.tokenizers.src
    if not isinstance(model, Transformer):
        raise CheckpointError(f"system = {model.config.system!r} has no self-attention; use a Transformer")
    sources = [normalise(text) for text in texts]
    ids = [translator.source_ids(source) for source in sources]
    token_lengths = _lengths_of_tokens(tokenizer)
    by_row: dict[int, WordAttention] = {}
    for rows in plan_by_length([len(row) + 1 for row in ids], max_tokens=MAX_TOKENS):
        weights_BLHPP = _encoder_weights(model, [[*ids[row], EOS_ID] for row in rows])
        for row, weights_LHPP in zip(rows, weights_BLHPP, strict=True):
            lengths = _lengths_of_words(tokenizer.words(sources[row]), [token_lengths[id] for id in ids[row]])
            words = _words(tokenizer, ids[row], lengths)
            by_row[row] = WordAttention(
                (*words, SPECIAL_TOKENS[EOS_ID]), merge_subwords(weights_LHPP, np.array([*lengths, 1]))
            )
    return [by_row[row] for row in range(len(texts))]


def split_into_words(translator: Translator, text: str) -> tuple[list[str], list[int]]:
    """Return the words of a text and the number of subwords of each. Raises DataError if it has no words."""
    tokenizer, source = translator.tokenizers.src, normalise(text)
    ids = translator.source_ids(source)
    token_lengths = _lengths_of_tokens(tokenizer)
    lengths = _lengths_of_words(tokenizer.words(source), [token_lengths[id] for id in ids])
    return _words(tokenizer, ids, lengths), lengths


def untrained(translator: Translator) -> Translator:
    """Return the same model with its initial weights: a control for probes of the trained one."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = make_model(translator.model.config)
    direction = f"{translator.src_language}-{translator.tgt_language}"
    model = model.eval().to(translator.model.output_weight.device)
    return Translator(model, translator.tokenizers, translator.search, direction=direction)


def lengths_of_words(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the number of subwords of each word of ``text``; punctuation marks are words.

    >>> from transduce.text import train_bpe
    >>> tokenizer = train_bpe(["low lower low"], vocab_size=264)
    >>> tokenizer.pieces(tokenizer.encode("low slow.")), lengths_of_words(tokenizer, "low slow.")
    (['▁low', '▁', 's', 'lo', 'w', '.'], [1, 4, 1])
    """
    token_lengths = _lengths_of_tokens(tokenizer)
    return _lengths_of_words(tokenizer.words(text), [token_lengths[id] for id in tokenizer.encode(text)])


def _lengths_of_tokens(tokenizer: Tokenizer) -> dict[int, int]:
    """Return each token's length in characters of the byte-level alphabet, without WordPiece's continuation mark."""
    return {id: len(token.removeprefix(CONTINUATION)) for token, id in tokenizer.vocabulary.items()}


def _lengths_of_words(words: Sequence[str], token_lengths: Sequence[int]) -> list[int]:
    """Return the number of subwords of each word, given the lengths of its tokens; no subword is part of two words."""
    word_of_token = np.repeat(np.arange(len(words)), [len(word) for word in words])
    last_tokens = np.cumsum(np.array(token_lengths, dtype=np.int64)) - 1
    counts: list[int] = np.bincount(word_of_token[last_tokens]).tolist()
    return counts


def _words(tokenizer: Tokenizer, ids: Sequence[int], lengths: Sequence[int]) -> list[str]:
    """Return the words as text, without the space before them."""
    cuts = np.cumsum([0, *lengths])
    return [tokenizer.decode(ids[start:end]) for start, end in pairwise(cuts)]


def merge_subwords(weights_LHPP: Weights, lengths_S: NDArray[np.int64]) -> Weights:
    """Return weights (L, H, S, S): summed over the subwords of a key, averaged over the subwords of a query."""
    starts_S = np.cumsum(lengths_S) - lengths_S
    to_words_LHPS = np.add.reduceat(weights_LHPP, starts_S, axis=-1)
    summed_LHSS = np.add.reduceat(to_words_LHPS, starts_S, axis=-2)
    weights: Weights = (summed_LHSS / lengths_S[:, None]).astype(np.float32)
    return weights


@torch.no_grad()
def _encoder_weights(model: Transformer, rows: Sequence[Sequence[int]]) -> list[Weights]:
    """Return the attention between the subwords of each row, (L, H, P, P)."""
    layers: list[Tensor] = []

    def collect(kind: AttentionKind, layer: int, weights_BHPP: Tensor) -> None:
        layers.append(weights_BHPP.float().cpu())

    model.encode(pad_rows([list(row) for row in rows]).to(model.output_weight.device), attention_hook=collect)
    weights_BLHPP = torch.stack(layers, dim=1).numpy()
    return [weights_LHPP[..., : len(row), : len(row)] for row, weights_LHPP in zip(rows, weights_BLHPP, strict=True)]
