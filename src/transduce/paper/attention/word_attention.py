"""What each encoder head looks at, word by word: attention between pieces, added up over the pieces of a word.

As Clark et al. (2019) do for BERT: attention to a word is the sum over its pieces, attention from a word their mean, so
that a row still sums to 1.
"""
# B sentences, L layers, H heads, P pieces, W words; the last of both is the end symbol

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
from transduce.model import AttentionKind, Transformer, make_model
from transduce.tasks import Translator
from transduce.text import EOS_ID, SPECIAL_TOKENS, Tokenizer, normalise
from transduce.text.tokenizer_pipelines import CONTINUATION

__all__ = ["WordAttention", "attention_between_words", "lengths_of_words", "untrained"]

PIECES_AT_A_TIME = 4000

Weights = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class WordAttention:
    """The encoder's attention in one sentence; ``weights[layer, head, i]`` says where word ``i`` looks."""

    words: tuple[str, ...]  # W, the end symbol last
    weights: Weights  # (L, H, W, W), rows sum to 1

    @property
    def n_words(self) -> int:
        """Without the end symbol."""
        return len(self.words) - 1


def attention_between_words(translator: Translator, texts: Sequence[str]) -> list[WordAttention]:
    """The encoder's attention in each text.

    Raises DataError if there is no word in one, CheckpointError if the model is no Transformer.
    """
    model, tokenizer = translator.model, translator.tokenizers.src
    if not isinstance(model, Transformer):
        raise CheckpointError(f"system = {model.config.system!r} has no self-attention to look at; use a Transformer")
    sources = [normalise(text) for text in texts]
    ids = [translator.source_ids(source) for source in sources]
    n_tokens_of_tree = _lengths_of_tokens(tokenizer)
    found: dict[int, WordAttention] = {}
    for rows in plan_by_length([len(row) + 1 for row in ids], max_tokens=PIECES_AT_A_TIME):
        weights_BLHPP = _encoder_weights(model, [[*ids[row], EOS_ID] for row in rows])
        for row, weights_LHPP in zip(rows.tolist(), weights_BLHPP, strict=True):
            lengths = _lengths_of_words(tokenizer.words(sources[row]), [n_tokens_of_tree[id] for id in ids[row]])
            words = _words(tokenizer, ids[row], lengths)
            found[row] = WordAttention(
                (*words, SPECIAL_TOKENS[EOS_ID]), between_words(weights_LHPP, np.array([*lengths, 1]))
            )
    return [found[row] for row in range(len(texts))]


def untrained(translator: Translator, *, seed: int = 1) -> Translator:
    """The same model with weights as they are drawn before training: what a search finds where nothing is learned."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = make_model(translator.model.config)
    direction = f"{translator.src_language}-{translator.tgt_language}"
    model = model.eval().to(translator.model.output_weight.device)
    return Translator(model, translator.tokenizers, translator.search, direction=direction)


def lengths_of_words(tokenizer: Tokenizer, text: str) -> list[int]:
    """Of how many pieces each word of ``text`` is; punctuation is a word of its own.

    >>> from transduce.text import train_bpe
    >>> tokenizer = train_bpe(["low lower low"], vocab_size=264)
    >>> tokenizer.pieces(tokenizer.encode("low slow.")), lengths_of_words(tokenizer, "low slow.")
    (['▁low', '▁', 's', 'lo', 'w', '.'], [1, 4, 1])
    """
    n_tokens_of_tree = _lengths_of_tokens(tokenizer)
    return _lengths_of_words(tokenizer.words(text), [n_tokens_of_tree[id] for id in tokenizer.encode(text)])


def _lengths_of_tokens(tokenizer: Tokenizer) -> dict[int, int]:
    """In symbols of the byte-level alphabet, without the mark of a WordPiece that goes on with a word."""
    return {id: len(token.removeprefix(CONTINUATION)) for token, id in tokenizer.vocabulary.items()}


def _lengths_of_words(words: Sequence[str], n_tokens_of_tree: Sequence[int]) -> list[int]:
    """Pieces for each word, from the symbols of words and pieces; no piece is part of two words."""
    word_of_token = np.repeat(np.arange(len(words)), [len(word) for word in words])
    last_tokens = np.cumsum(np.array(n_tokens_of_tree, dtype=np.int64)) - 1
    counts: list[int] = np.bincount(word_of_token[last_tokens]).tolist()
    return counts


def _words(tokenizer: Tokenizer, ids: Sequence[int], lengths: Sequence[int]) -> list[str]:
    """The words as they are written, without the space before them."""
    cuts = np.cumsum([0, *lengths])
    return [tokenizer.decode(ids[start:end]) for start, end in pairwise(cuts)]


def between_words(weights_LHPP: Weights, lengths_W: NDArray[np.int64]) -> Weights:
    """(L, H, W, W) from the attention between pieces: the sum over those of a key, the mean over those of a query."""
    starts_W = np.cumsum(lengths_W) - lengths_W
    to_words_LHPW = np.add.reduceat(weights_LHPP, starts_W, axis=-1)
    summed_LHWW = np.add.reduceat(to_words_LHPW, starts_W, axis=-2)
    weights: Weights = (summed_LHWW / lengths_W[:, None]).astype(np.float32)
    return weights


@torch.no_grad()
def _encoder_weights(model: Transformer, rows: Sequence[Sequence[int]]) -> list[Weights]:
    """The attention between the pieces of each row, (L, H, P, P)."""
    layers: list[Tensor] = []

    def keep(kind: AttentionKind, layer: int, weights_BHPP: Tensor) -> None:
        layers.append(weights_BHPP.float().cpu())

    model.encode(pad_rows([list(row) for row in rows]).to(model.output_weight.device), attention_hook=keep)
    weights_BLHPP = torch.stack(layers, dim=1).numpy()
    return [weights_LHPP[..., : len(row), : len(row)] for row, weights_LHPP in zip(rows, weights_BLHPP, strict=True)]
