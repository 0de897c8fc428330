"""What every system that translates has: two embeddings, an output matrix, and two ways to run its decoder.

Shapes: B batch, S source positions, T target positions, N real target positions in a list, D d_model, V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, assert_never, cast

import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import ModelConfig
from transduce.model.embedding import TokenEmbedding

__all__ = ["EncoderDecoder"]


class EncoderDecoder(nn.Module, ABC):
    """A model over ids padded on the right with 0, as training and search know it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.output: nn.Module | None  # its own matrix; none where it is that of the embedding
        self.tgt_embedding = TokenEmbedding(config.tgt_vocab_size, config.d_model)
        match config.embeddings:  # section 3.4
            case "three-way":
                self.src_embedding = self.tgt_embedding
                self.output = None
            case "target":
                self.src_embedding = TokenEmbedding(config.src_vocab_size, config.d_model)
                self.output = None
            case "separate":
                self.src_embedding = TokenEmbedding(config.src_vocab_size, config.d_model)
                self.output = nn.Linear(config.d_model, config.tgt_vocab_size, bias=False)
            case _:
                assert_never(config.embeddings)

    @property
    def output_weight(self) -> Tensor:
        """The matrix (V, D) before the softmax. Section 3.4."""
        return self.tgt_embedding.weight if self.output is None else cast(Tensor, self.output.weight)

    def logits(self, states_ND: Tensor) -> Tensor:
        """Scores before the softmax, (N, V)."""
        if self.output is None:
            return F.linear(states_ND, self.tgt_embedding.weight)
        logits_NV: Tensor = self.output(states_ND)
        return logits_NV

    @abstractmethod
    def forward(self, src_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """The decoder's states at the real target positions, (N, D), row by row; ``logits`` makes scores of them.

        ``tgt_BT`` is the decoder's input: it begins with the begin symbol ("shifted right", figure 1).
        """

    @abstractmethod
    def start(self, src_BS: Tensor) -> Any:
        """Encode, and prepare to write one row for each sentence, token by token."""

    @abstractmethod
    def step(self, last_ids_N: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Scores (N, V) of the token after ``last_ids``, and the state that has seen it."""
