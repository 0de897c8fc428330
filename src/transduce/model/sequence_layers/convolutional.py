"""Convolutional layers, contiguous, dilated and separable. Section 4, Table 1.

Shapes: B sentences, T positions, D d_model.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from transduce.errors import ShapeError
from transduce.model.sequence_layers.sequence_layer import SequenceLayer, in_dtype_of

__all__ = ["Convolution", "SeparableConvolution"]


class Convolution(SequenceLayer):
    """A convolution of kernel width k over all channels: k n d^2 operations.

    A stack of contiguous kernels connects any two positions in n / k layers, or in log_k n layers if the dilation grows
    k-fold with each layer.
    """

    def __init__(self, d_model: int, *, k: int, dilation: int = 1, is_causal: bool = False) -> None:
        super().__init__(d_model, is_causal=is_causal)
        if min(k, dilation) < 1 or (k % 2 == 0 and not is_causal):
            raise ShapeError(
                f"convolution: k must be odd unless causal, and k and dilation at least 1; got {k}, {dilation}"
            )
        self.k, self.dilation = k, dilation
        self.kernel = nn.Conv1d(d_model, d_model, k, dilation=dilation)

    def forward(self, x_BTD: Tensor, is_real_BT: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        return self._convolve(x_BTD.masked_fill(~is_real_BT.unsqueeze(-1), 0.0))

    def _convolve(self, x_BTD: Tensor) -> Tensor:
        before, after = self._span()
        out_BDT: Tensor = self.kernel(F.pad(in_dtype_of(self.kernel.weight, x_BTD).transpose(1, 2), (before, after)))
        return out_BDT.transpose(1, 2)

    def _span(self) -> tuple[int, int]:
        span = (self.k - 1) * self.dilation
        return (span, 0) if self.is_causal else (span // 2, span // 2)

    def receptive_field(self, n_positions: int) -> tuple[int, int]:
        """(k - 1) times the dilation before if causal, else half of that on each side; at most the whole sentence."""
        before, after = (width // self.dilation for width in self._span())
        limit = (n_positions - 1) // self.dilation
        return min(before, limit) * self.dilation, min(after, limit) * self.dilation

    def multiplications(self, n_positions: int) -> int:
        """k n d^2."""
        return self.k * n_positions * self.d_model**2


class SeparableConvolution(Convolution):
    """A depthwise separable convolution: k n d + n d^2 operations. Section 4, [Chollet, 2016]."""

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
