"""What makes the first states of a source or of a target: tokens and their positions. Sections 3.4 and 3.5.

Shapes: B sentences, N rows or real positions in a list, T positions, D d_model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import torch
from torch import Tensor, nn

from transduce.model.dropout import Dropout
from transduce.model.embedding import TokenEmbedding
from transduce.model.layout import Layout
from transduce.text import PAD_ID

__all__ = ["FrontEnd", "Places", "TokenFrontEnd"]


@dataclass(frozen=True, slots=True)
class Places:
    """Where each row of a decoding stands."""

    n_seen_N: Tensor  # tokens that a row has seen: the position of the next one
    most: int  # none of them is above

    def __len__(self) -> int:
        return len(self.n_seen_N)

    def select(self, rows_N: Tensor) -> Self:
        """Those of some rows."""
        return replace(self, n_seen_N=self.n_seen_N[rows_N])

    def rewind(self, n_N: Tensor) -> Self:
        """With the last ``n`` tokens of each row taken back."""
        n_seen_N = self.n_seen_N - n_N
        return replace(self, n_seen_N=n_seen_N, most=int(n_seen_N.max()))

    def of_new(self, n_tokens: int) -> Tensor:
        """The positions (N, T) of the next tokens of each row."""
        first_N1 = self.n_seen_N.unsqueeze(1)
        return first_N1 if n_tokens == 1 else first_N1 + torch.arange(n_tokens, device=first_N1.device)

    def after(self, n_tokens: int, n_new_N: Tensor | None) -> Self:
        """Behind the next tokens of each row: so many, or as many as ``n_new_N`` says."""
        n_seen_N = self.n_seen_N + (n_tokens if n_new_N is None else n_new_N)
        return replace(self, n_seen_N=n_seen_N, most=self.most + n_tokens)


class FrontEnd(Protocol):
    """What turns a source into states: tokens here; patches of an image or frames of a sound would be others."""

    def __call__(self, source: Tensor, /) -> tuple[Tensor, Layout]:
        """The first states of the real positions, (N, D), and where these stand."""


class TokenFrontEnd(nn.Module):
    """The embedding of each token plus the encoding of its position, then dropout. Sections 3.4, 3.5 and 5.4."""

    def __init__(self, embedding: TokenEmbedding, positions: nn.Module, *, p_drop: float) -> None:
        super().__init__()
        self.embedding, self.positions, self.dropout = embedding, positions, Dropout(p_drop)

    def forward(self, ids_BT: Tensor) -> tuple[Tensor, Layout]:
        """The states (N, D) of the real positions of ids that are padded on the right with 0, and where they stand."""
        layout = Layout.of(ids_BT != PAD_ID)
        encoding_ND = self.positions(layout.positions_N(), ids_BT.shape[1])
        return self.dropout(self.embedding(ids_BT.flatten()[layout.index_N]) + encoding_ND), layout

    def start(self, n_rows: int) -> Places:
        """Where rows stand that have seen nothing."""
        return Places(torch.zeros(n_rows, dtype=torch.int64, device=self.embedding.weight.device), 0)

    def extend(self, ids_NT: Tensor, places: Places, n_new_N: Tensor | None = None) -> tuple[Tensor, Places]:
        """The states (N, T, D) of the next tokens of each row, and where the rows stand behind them."""
        n_tokens = ids_NT.shape[1]
        encoding_NTD = self.positions(places.of_new(n_tokens), places.most + n_tokens)
        return self.dropout(self.embedding(ids_NT) + encoding_NTD), places.after(n_tokens, n_new_N)
