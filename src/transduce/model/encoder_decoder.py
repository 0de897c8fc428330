"""What every encoder-decoder has: an output layer over the target's vocabulary, and two ways to run its decoder.

Shapes: B sentences, S source positions, T target positions, N rows or real target positions in a list, D d_model,
V vocabulary.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, assert_never

from torch import Tensor

from transduce.config import ModelConfig
from transduce.model.decoding import IncrementalDecoder
from transduce.model.embedding import TokenEmbedding
from transduce.model.experts import AuxiliaryLosses
from transduce.model.output import LinearOutput, TiedOutput, VocabularyOutput
from transduce.model.weights import NamedOnDisk

__all__ = ["EncoderDecoder", "make_embeddings", "make_output"]


class EncoderDecoder(NamedOnDisk, IncrementalDecoder[Any]):
    """A model over ids padded on the right with 0, as training and search know it."""

    output: VocabularyOutput

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config

    @property
    def output_weight(self) -> Tensor:
        """The matrix (V, D) before the softmax. Section 3.4."""
        return self.output.weight

    def logits(self, states_ND: Tensor) -> Tensor:
        """Scores before the softmax, (N, V)."""
        return self.output.logits(states_ND)

    @abstractmethod
    def forward(self, src_BS: Tensor, tgt_BT: Tensor, *, auxiliary: AuxiliaryLosses | None = None) -> Tensor:
        """The decoder's states at the real target positions, (N, D), row by row; ``output`` makes scores of them.

        ``tgt_BT`` is the decoder's input: it begins with the begin symbol ("shifted right", figure 1). ``auxiliary``
        collects what layers would minimise beside the loss.
        """

    @abstractmethod
    def start(self, src_BS: Tensor) -> Any:
        """Encode, and prepare to write one row for each sentence."""


def make_embeddings(config: ModelConfig) -> tuple[TokenEmbedding, TokenEmbedding]:
    """Those of source and target: one and the same, or two. Section 3.4."""
    target = TokenEmbedding(config.tgt_vocab_size, config.d_model)
    is_one = config.embeddings == "three-way"
    return target if is_one else TokenEmbedding(config.src_vocab_size, config.d_model), target


def make_output(config: ModelConfig, embedding: TokenEmbedding) -> VocabularyOutput:
    """Over the matrix of the target's embedding, or over one of its own. Section 3.4."""
    match config.embeddings:
        case "three-way" | "target":
            return TiedOutput(embedding)
        case "separate":
            return LinearOutput(config.d_model, config.tgt_vocab_size)
        case _:
            assert_never(config.embeddings)
