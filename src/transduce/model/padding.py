"""Where the real tokens of a padded batch stand.

Most of a Transformer works on each position alone (projections, feed-forward, norms, the softmax): it needs no padding.
Those parts see a *list* of the real positions, (N, D); only attention needs the *grid*, (B, T, D).

Where there is padding, the list is filled up to a multiple of 64 with copies of its first row, which nobody reads:
oneDNN builds a kernel for each shape of a bf16 product that it has not seen lately, and the number of real positions is
another in each batch.

Shapes: B batch, T positions, N real positions (and those that fill up), D any width.
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
    """The real positions of a right-padded (B, T) batch.

    >>> padding = PaddingInfo.from_mask(torch.tensor([[True, True], [True, False]]))
    >>> padding.unpad(torch.tensor([[[1.0], [2.0]], [[3.0], [0.0]]]))[: padding.n_real].flatten().tolist()
    [1.0, 2.0, 3.0]
    """

    is_real_BT: Tensor  # bool
    index_N: Tensor  # of each real position in the flattened grid, in row-major order; then zeros to fill up
    n_real: int

    @property
    def has_padding(self) -> bool:
        """Whether grid and list differ."""
        return self.n_real < self.is_real_BT.numel()

    @staticmethod
    def from_mask(is_real_BT: Tensor) -> PaddingInfo:
        """From a boolean grid. Raises ShapeError if a row is empty or has padding before a real position."""
        if not bool(is_real_BT[:, 0].all()):
            raise ShapeError("a row of the batch has no token; give each sentence at least its end symbol")
        if bool((is_real_BT[:, 1:] & ~is_real_BT[:, :-1]).any()):
            raise ShapeError("padding stands before a token; pad on the right")
        index_N = is_real_BT.flatten().nonzero().squeeze(1)
        n_real = len(index_N)
        if n_real < is_real_BT.numel():
            index_N = F.pad(index_N, (0, -n_real % ROUND_UP_TO))
        return PaddingInfo(is_real_BT, index_N, n_real)

    def pad(self, x_ND: Tensor) -> Tensor:
        """(N, D) to (B, T, D), zeros where there is padding."""
        if self.has_padding:
            grid_ND = x_ND.new_zeros(self.is_real_BT.numel(), x_ND.shape[-1])
            x_ND = grid_ND.index_copy_(0, self.index_N[: self.n_real], x_ND[: self.n_real])
        return x_ND.view(*self.is_real_BT.shape, -1)

    def unpad(self, x_BTD: Tensor) -> Tensor:
        """(B, T, D) to (N, D)."""
        x_ND = x_BTD.flatten(0, 1)
        return x_ND.index_select(0, self.index_N) if self.has_padding else x_ND

    def positions_N(self) -> Tensor:
        """The place of each real position in its sentence, from 0."""
        return self.index_N % self.is_real_BT.shape[1]

    def allow_B1S(self) -> Tensor | None:
        """Which positions may be attended to by any other of the same sentence; None: all of them."""
        return self.is_real_BT.unsqueeze(1) if self.has_padding else None


@dataclass(frozen=True, slots=True)
class EncoderOutput:
    """The memory that cross-attention reads: the states (N, D) of the real source positions, and where they stand."""

    states_MD: Tensor
    padding: PaddingInfo


def causal_mask(n_positions: int, device: torch.device) -> Tensor:
    """allow (1, T, T): each position sees itself and what came before it. Section 3.2.3.

    Padding on the right needs no mask of its own beside this one: no real position looks that far.

    >>> causal_mask(2, torch.device("cpu")).tolist()
    [[[True, False], [True, True]]]
    """
    return torch.ones(1, n_positions, n_positions, dtype=torch.bool, device=device).tril()
