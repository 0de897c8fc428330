"""What makes the first states of a source or of a target: tokens and their positions. Sections 3.4 and 3.5.

Shapes: B sentences, N rows or real positions in a list, T positions, D d_model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from transduce.model.dropout import Dropout
from transduce.model.embedding import TokenEmbedding
from transduce.model.padding import PaddingInfo
from transduce.text import PAD_ID

__all__ = ["FrontEnd", "Positions", "TokenFrontEnd"]


@dataclass(frozen=True, slots=True)
class Positions:
    """Where each row of a decoding stands: the position of its next token."""

    n_rows: int
    device: torch.device
    most: int = 0  # tokens that the rows have seen
    fewer_N: Tensor | None = None  # by how many fewer each has; None: all have seen as many

    def select(self, rows_N: Tensor) -> Positions:
        """Those of some rows."""
        fewer_N = None if self.fewer_N is None else self.fewer_N[rows_N]
        return Positions(len(rows_N), self.device, self.most, fewer_N)

    def rewind(self, n_N: Tensor) -> Positions:
        """With the last ``n`` tokens of each row taken back."""
        fewer_N = n_N if self.fewer_N is None else self.fewer_N + n_N
        least = int(fewer_N.min())
        return Positions(self.n_rows, self.device, self.most - least, fewer_N - least)

    def of_new(self, n_tokens: int) -> Tensor:
        """The positions (N, T) of the next tokens of each row."""
        position_NT = torch.full((self.n_rows, n_tokens), self.most, device=self.device)
        if n_tokens > 1:
            position_NT += torch.arange(n_tokens, device=self.device)
        return position_NT if self.fewer_N is None else position_NT - self.fewer_N.unsqueeze(1)

    def after(self, n_tokens: int, n_new_N: Tensor | None) -> Positions:
        """Behind the next tokens of each row: so many, or as many as ``n_new_N`` says."""
        positions = Positions(self.n_rows, self.device, self.most + n_tokens, self.fewer_N)
        return positions if n_new_N is None else positions.rewind(n_tokens - n_new_N)


class FrontEnd(Protocol):
    """What turns a source into states: tokens here; patches of an image or frames of a sound would be others."""

    def __call__(self, source: Tensor, /) -> tuple[Tensor, PaddingInfo]:
        """The first states of the real positions, (N, D), and where these stand."""


class TokenFrontEnd(nn.Module):
    """The embedding of each token plus the encoding of its position, then dropout. Sections 3.4, 3.5 and 5.4."""

    def __init__(self, embedding: TokenEmbedding, positions: nn.Module, *, p_drop: float) -> None:
        super().__init__()
        self.embedding, self.positions, self.dropout = embedding, positions, Dropout(p_drop)

    def forward(self, ids_BT: Tensor) -> tuple[Tensor, PaddingInfo]:
        """The states (N, D) of the real positions of ids that are padded on the right with 0, and where they stand."""
        padding = PaddingInfo.from_mask(ids_BT != PAD_ID)
        encoding_ND = self.positions(padding.positions_N(), ids_BT.shape[1])
        return self.dropout(self.embedding(ids_BT.flatten()[padding.index_N]) + encoding_ND), padding

    def start(self, n_rows: int) -> Positions:
        """Where rows stand that have seen nothing."""
        return Positions(n_rows, self.embedding.weight.device)

    def extend(self, ids_NT: Tensor, positions: Positions, n_new_N: Tensor | None = None) -> tuple[Tensor, Positions]:
        """The states (N, T, D) of the next tokens of each row, and where the rows stand behind them."""
        n_tokens = ids_NT.shape[1]
        encoding_NTD = self.positions(positions.of_new(n_tokens), positions.most + n_tokens)
        return self.dropout(self.embedding(ids_NT) + encoding_NTD), positions.after(n_tokens, n_new_N)
