"""Convolutions: each position sees k of its neighbours, next to each other or dilated. Section 4, Table 1.

Shapes: B batch, T positions, D d_model.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from transduce.errors import ShapeError
from transduce.model.sequence_layers.sequence_layer import SequenceLayer

__all__ = ["Convolution", "SeparableConvolution"]


class Convolution(SequenceLayer):
    """A kernel of width k over all channels: k n d^2. With ``dilation``, every so many positions are seen.

    A stack of contiguous kernels links any two positions in n / k layers, one whose dilation grows k-fold with each
    layer in log_k n.
    """

    def __init__(self, d_model: int, *, k: int, dilation: int = 1, is_causal: bool = False) -> None:
        super().__init__(d_model, is_causal=is_causal)
        if min(k, dilation) < 1 or (k % 2 == 0 and not is_causal):
            raise ShapeError(
                f"a kernel with a middle has an odd width, and a dilation is at least 1; got {k}, {dilation}"
            )
        self.k, self.dilation = k, dilation
        self.kernel = nn.Conv1d(d_model, d_model, k, dilation=dilation)

    def forward(self, x_BTD: Tensor, is_real_BT: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        return self._convolve(x_BTD.masked_fill(~is_real_BT.unsqueeze(-1), 0.0))

    def _convolve(self, x_BTD: Tensor) -> Tensor:
        before, after = self._span()
        out_BDT: Tensor = self.kernel(F.pad(x_BTD.transpose(1, 2), (before, after)))
        return out_BDT.transpose(1, 2)

    def _span(self) -> tuple[int, int]:
        span = (self.k - 1) * self.dilation
        return (span, 0) if self.is_causal else (span // 2, span // 2)

    def reach(self, n_positions: int) -> tuple[int, int]:
        """(k - 1) times the dilation before, or half of that on either side."""
        before, after = (length // self.dilation for length in self._span())
        inside = (n_positions - 1) // self.dilation  # what lies further is not in the sentence
        return min(before, inside) * self.dilation, min(after, inside) * self.dilation

    def multiplications(self, n_positions: int) -> int:
        """k n d^2."""
        return self.k * n_positions * self.d_model**2


class SeparableConvolution(Convolution):
    """A kernel for each channel alone, then a matrix over channels: k n d + n d^2. Section 4, [Chollet, 2016]."""

    def __init__(self, d_model: int, *, k: int, dilation: int = 1, is_causal: bool = False) -> None:
        super().__init__(d_model, k=k, dilation=dilation, is_causal=is_causal)
        self.kernel = nn.Conv1d(d_model, d_model, k, dilation=dilation, groups=d_model)
        self.pointwise = nn.Linear(d_model, d_model)

    def forward(self, x_BTD: Tensor, is_real_BT: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        out_BTD: Tensor = self.pointwise(super().forward(x_BTD, is_real_BT))
        return out_BTD

    def multiplications(self, n_positions: int) -> int:
        """k n d + n d^2."""
        return self.k * n_positions * self.d_model + n_positions * self.d_model**2
