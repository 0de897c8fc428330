"""Where the real tokens of a padded batch stand.

Most of a Transformer works on each position alone (projections, feed-forward, norms, the softmax): it needs no padding.
Those parts see a *list* of the real positions, (N, D); only attention needs the *grid*, (B, T, D).

Shapes: B batch, T positions, N real positions, D any width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.errors import ShapeError

__all__ = ["Layout", "causal_mask"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The real positions of a right-padded (B, T) batch.

    >>> layout = Layout.of(torch.tensor([[True, True], [True, False]]))
    >>> layout.to_list(torch.tensor([[[1.0], [2.0]], [[3.0], [0.0]]])).flatten().tolist()
    [1.0, 2.0, 3.0]
    """

    is_real_BT: Tensor  # bool
    index_N: Tensor  # of each real position in the flattened grid, in row-major order
    has_padding: bool

    @staticmethod
    def of(is_real_BT: Tensor) -> Layout:
        """From a boolean grid. Raises ShapeError if a row is empty or has padding before a real position."""
        if not bool(is_real_BT[:, 0].all()):
            raise ShapeError("a row of the batch has no token; give each sentence at least its end symbol")
        if bool((is_real_BT[:, 1:] & ~is_real_BT[:, :-1]).any()):
            raise ShapeError("padding stands before a token; pad on the right")
        index_N = is_real_BT.flatten().nonzero().squeeze(1)
        return Layout(is_real_BT, index_N, has_padding=index_N.numel() < is_real_BT.numel())

    def to_grid(self, x_ND: Tensor) -> Tensor:
        """(N, D) to (B, T, D), zeros where there is padding."""
        if self.has_padding:
            x_ND = x_ND.new_zeros(self.is_real_BT.numel(), x_ND.shape[-1]).index_copy(0, self.index_N, x_ND)
        return x_ND.view(*self.is_real_BT.shape, -1)

    def to_list(self, x_BTD: Tensor) -> Tensor:
        """(B, T, D) to (N, D)."""
        x_ND = x_BTD.flatten(0, 1)
        return x_ND.index_select(0, self.index_N) if self.has_padding else x_ND

    def positions_N(self) -> Tensor:
        """The place of each real position in its sentence, from 0."""
        return self.index_N % self.is_real_BT.shape[1]

    def allow_B1S(self) -> Tensor | None:
        """Which positions may be attended to by any other of the same sentence; None: all of them."""
        return self.is_real_BT.unsqueeze(1) if self.has_padding else None


def causal_mask(n_positions: int, device: torch.device) -> Tensor:
    """allow (1, T, T): each position sees itself and what came before it. Section 3.2.3.

    Padding on the right needs no mask of its own beside this one: no real position looks that far.

    >>> causal_mask(2, torch.device("cpu")).tolist()
    [[[True, False], [True, True]]]
    """
    return torch.ones(1, n_positions, n_positions, dtype=torch.bool, device=device).tril()
