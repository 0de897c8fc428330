"""The interface of all encoder-decoder models, for training (``forward``) and decoding (``start``, ``extend``).

Shapes: B sentences, S source positions, T target positions, N real target positions or rows of a decoding batch,
D d_model, V vocabulary.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, assert_never

from torch import Tensor

from transduce.config import EncoderDecoderConfig, TransformerConfig
from transduce.model.attention import AttentionHook
from transduce.model.decoding import IncrementalDecoder
from transduce.model.embedding import TokenEmbedding
from transduce.model.experts import AuxiliaryLosses
from transduce.model.output import LinearOutput, TiedOutput, VocabularyOutput
from transduce.model.padding import PairPadding
from transduce.model.weights import NamedOnDisk

__all__ = ["EncoderDecoder", "make_embeddings", "make_output"]


class EncoderDecoder(NamedOnDisk, IncrementalDecoder[Any]):
    """An encoder-decoder over ids padded on the right with 0, as training and search use it."""

    output: VocabularyOutput

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.config = config

    @property
    def output_weight(self) -> Tensor:
        """The output projection (V, D) before the softmax. Section 3.4."""
        return self.output.weight

    def logits(self, states_ND: Tensor) -> Tensor:
        """Logits, (N, V)."""
        return self.output.logits(states_ND)

    @abstractmethod
    def forward(
        self,
        src_BS: Tensor,
        tgt_BT: Tensor,
        *,
        padding: PairPadding | None = None,
        auxiliary: AuxiliaryLosses | None = None,
        attention_hook: AttentionHook | None = None,
    ) -> Tensor:
        """The decoder's states at the real target positions, (N, D), in row-major order; ``output`` gives their logits.

        ``tgt_BT`` is the decoder's input and begins with the BOS token ("shifted right", figure 1). ``padding`` is that
        of both sides if it is known; else it is read from the ids. ``auxiliary`` collects the layers' auxiliary losses.
        ``attention_hook`` receives the weights of every attention layer that the model has.
        """

    @abstractmethod
    def start(self, src_BS: Tensor) -> Any:
        """Encode the source and return the initial decoding state: one row per sentence."""


def make_embeddings(config: EncoderDecoderConfig) -> tuple[TokenEmbedding, TokenEmbedding]:
    """The embeddings of source and target, one shared module if tied three ways. Section 3.4."""
    is_scaled = not isinstance(config, TransformerConfig) or config.scale_embeddings
    target = TokenEmbedding(config.tgt_vocab_size, config.d_model, is_scaled=is_scaled)
    if config.embeddings == "three-way":
        return target, target
    return TokenEmbedding(config.src_vocab_size, config.d_model, is_scaled=is_scaled), target


def make_output(config: EncoderDecoderConfig, embedding: TokenEmbedding) -> VocabularyOutput:
    """The output layer: tied to the target embedding, or with a separate matrix. Section 3.4."""
    has_bias = isinstance(config, TransformerConfig) and config.output_bias
    match config.embeddings:
        case "three-way" | "target":
            return TiedOutput(embedding, has_bias=has_bias)
        case "separate":
            return LinearOutput(config.d_model, config.tgt_vocab_size, has_bias=has_bias)
        case _:
            assert_never(config.embeddings)
