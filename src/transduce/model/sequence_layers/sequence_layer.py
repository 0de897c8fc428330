"""The interface of the layer types of Table 1, (B, T, D) to (B, T, D).

Shapes: B sentences, T positions, D d_model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

__all__ = ["SequenceLayer", "in_dtype_of"]


def in_dtype_of(weight: Tensor, x: Tensor) -> Tensor:
    """``x`` in the dtype of the weight that it meets, unless autocast converts both.

    In a model for inference, the linear layers may give bf16, and the other layers have fp32 weights.
    """
    return x if torch.is_autocast_enabled(x.device.type) else x.to(weight.dtype)


class SequenceLayer(nn.Module, ABC):
    """A layer that passes information between the positions of a sentence.

    Inputs at padding are ignored and outputs there are undefined. In a causal layer, each position sees itself and the
    positions before it; otherwise both sides.
    """

    def __init__(self, d_model: int, *, is_causal: bool) -> None:
        super().__init__()
        self.d_model, self.is_causal = d_model, is_causal

    @abstractmethod
    def forward(self, x_BTD: Tensor, is_real_BT: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D); ``is_real_BT`` is False at padding, which is on the right."""

    def receptive_field(self, n_positions: int) -> tuple[int, int]:
        """The maximum numbers of positions that an output sees before and after its own; by default, all."""
        return n_positions - 1, 0 if self.is_causal else n_positions - 1

    @abstractmethod
    def multiplications(self, n_positions: int) -> int:
        """The multiplications of one layer over a sentence, in matrix products and attention."""
