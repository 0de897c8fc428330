"""Padding removal: converts batches between padded (B, T, D) and unpadded (N, D) tensors.

Most of a Transformer works on each position alone (projections, feed-forward, norms, the softmax) and needs no padding.
These parts run on the unpadded tensor (N, D) of the real positions; only attention runs on the padded one.

If the batch has padding, N is rounded up to a multiple of 64 with copies of row 0, whose outputs are ignored: oneDNN
compiles a kernel for each shape of a bf16 product not in its cache, and the number of real positions varies by batch.

Shapes: B sentences, T positions, S key positions, N real positions (rounded up), M real source positions (rounded up),
D any width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.errors import ShapeError

__all__ = ["EncoderOutput", "PaddingInfo", "causal_mask"]

ROUND_UP_TO = 64


@dataclass(frozen=True, slots=True)
class PaddingInfo:
    """Which positions of a right-padded (B, T) batch are real, and the conversion between padded and unpadded.

    >>> padding = PaddingInfo.from_mask(torch.tensor([[True, True], [True, False]]))
    >>> padding.unpad(torch.tensor([[[1.0], [2.0]], [[3.0], [0.0]]]))[: padding.n_real].flatten().tolist()
    [1.0, 2.0, 3.0]
    """

    is_real_BT: Tensor  # bool
    index_N: Tensor  # of each real position in the flattened batch, in row-major order; then zeros up to N
    n_real: int  # real positions, without the rounding

    @property
    def has_padding(self) -> bool:
        """Whether any position is padding."""
        return self.n_real < self.is_real_BT.numel()

    @staticmethod
    def from_mask(is_real_BT: Tensor) -> PaddingInfo:
        """Build it from a boolean mask. Raises ShapeError if a row is empty or not padded on the right."""
        if not bool(is_real_BT[:, 0].all()):
            raise ShapeError("a row of the batch has no token; give each sentence at least its EOS token")
        if bool((is_real_BT[:, 1:] & ~is_real_BT[:, :-1]).any()):
            raise ShapeError("a row of the batch has padding before a token; pad on the right")
        index_N = is_real_BT.flatten().nonzero().squeeze(1)
        n_real = len(index_N)
        if n_real < is_real_BT.numel():
            index_N = F.pad(index_N, (0, -n_real % ROUND_UP_TO))
        return PaddingInfo(is_real_BT, index_N, n_real)

    def pad(self, x_ND: Tensor) -> Tensor:
        """Restore the padding: (N, D) to (B, T, D), with zeros at padding."""
        if self.has_padding:
            padded = x_ND.new_zeros(self.is_real_BT.numel(), x_ND.shape[-1])  # (B T, D)
            x_ND = padded.index_copy_(0, self.index_N[: self.n_real], x_ND[: self.n_real])
        return x_ND.view(*self.is_real_BT.shape, -1)

    def unpad(self, x_BTD: Tensor) -> Tensor:
        """Remove the padding: (B, T, D) to (N, D)."""
        x_ND = x_BTD.flatten(0, 1)
        return x_ND.index_select(0, self.index_N) if self.has_padding else x_ND

    def positions_N(self) -> Tensor:
        """The index of each real position in its sentence, from 0, (N,)."""
        return self.index_N % self.is_real_BT.shape[1]

    def allow_B1S(self) -> Tensor | None:
        """The key mask (B, 1, S) that hides padding; None if there is none."""
        return self.is_real_BT.unsqueeze(1) if self.has_padding else None


@dataclass(frozen=True, slots=True)
class EncoderOutput:
    """The encoder's output ("memory"): the states (M, D) of the real source positions, and their padding info."""

    states_MD: Tensor
    padding: PaddingInfo


def causal_mask(n_positions: int, device: torch.device) -> Tensor:
    """The causal mask (1, T, T): each position attends to itself and the positions before it. Section 3.2.3.

    It hides padding on the right as well: real positions come before it.

    >>> causal_mask(2, torch.device("cpu")).tolist()
    [[[True, False], [True, True]]]
    """
    return torch.ones(1, n_positions, n_positions, dtype=torch.bool, device=device).tril()
