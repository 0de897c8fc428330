"""What the layers of Table 1 have in common: each position learns of others, (B, T, D) to (B, T, D).

Shapes: B batch, T positions, D d_model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

__all__ = ["SequenceLayer"]


class SequenceLayer(nn.Module, ABC):
    """One way for positions to learn of each other.

    What stands at padding is not read, and what comes out there means nothing. A causal mixer shows a position what is
    before it and itself; any other both sides.
    """

    def __init__(self, d_model: int, *, is_causal: bool) -> None:
        super().__init__()
        self.d_model, self.is_causal = d_model, is_causal

    @abstractmethod
    def forward(self, x_BTD: Tensor, is_real_BT: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D); ``is_real``: not padding, which stands on the right."""

    def reach(self, n_positions: int) -> tuple[int, int]:
        """How many positions before, and after, one layer lets a position see, at most: all, unless it is narrower."""
        return n_positions - 1, 0 if self.is_causal else n_positions - 1

    @abstractmethod
    def multiplications(self, n_positions: int) -> int:
        """Products of two numbers in one layer over a sentence, as matrix products and attention make them."""
