"""The input of encoder and decoder: token embeddings plus positional encodings. Sections 3.4 and 3.5.

Shapes: B sentences, N real positions or rows of a decoding batch, T positions, D d_model.
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
    """The position of the next token of each row of a decoding batch."""

    n_rows: int
    device: torch.device
    longest: int = 0  # length of the longest row so far, also of one that has left
    shorter_by_N: Tensor | None = None  # how much shorter than that each row is; None: all have the same length

    def select(self, rows_N: Tensor) -> Positions:
        """The positions of the selected rows."""
        shorter_by_N = None if self.shorter_by_N is None else self.shorter_by_N[rows_N]
        return Positions(len(rows_N), self.device, self.longest, shorter_by_N)

    def rewind(self, n_N: Tensor) -> Positions:
        """The positions before the last ``n`` tokens of each row."""
        if self.shorter_by_N is None and self.n_rows == 1:
            return Positions(self.n_rows, self.device, self.longest - int(n_N))
        shorter_by_N = n_N if self.shorter_by_N is None else self.shorter_by_N + n_N
        minimum = int(shorter_by_N.min())
        return Positions(self.n_rows, self.device, self.longest - minimum, shorter_by_N - minimum)

    def next_positions(self, n_tokens: int, n_new_N: Tensor | None = None) -> Tensor:
        """The positions (N, T) of the next ``n_tokens`` tokens of each row; those after ``n_new_N`` repeat the last."""
        position_NT = torch.full((self.n_rows, n_tokens), self.longest, device=self.device)
        if n_tokens > 1:
            index_T = torch.arange(n_tokens, device=self.device)
            position_NT += index_T if n_new_N is None else index_T.minimum((n_new_N - 1).clamp(min=0).unsqueeze(1))
        return position_NT if self.shorter_by_N is None else position_NT - self.shorter_by_N.unsqueeze(1)

    def advance(self, n_tokens: int, n_new_N: Tensor | None) -> Positions:
        """The positions after ``n_tokens`` more tokens of each row, or after ``n_new_N[n]`` of row n."""
        positions = Positions(self.n_rows, self.device, self.longest + n_tokens, self.shorter_by_N)
        return positions if n_new_N is None else positions.rewind(n_tokens - n_new_N)


class FrontEnd(Protocol):
    """The input layer of an encoder: tokens here; image patches or audio frames are other examples."""

    def __call__(self, source: Tensor, padding: PaddingInfo | None = None, /) -> tuple[Tensor, PaddingInfo]:
        """The input states of the real positions, (N, D), and their padding info: that given, or its own."""


class TokenFrontEnd(nn.Module):
    """Token embedding plus positional encoding, then dropout. Sections 3.4, 3.5 and 5.4."""

    def __init__(self, embedding: TokenEmbedding, positions: nn.Module, *, p_drop: float) -> None:
        super().__init__()
        self.embedding, self.positions, self.dropout = embedding, positions, Dropout(p_drop)

    def forward(self, ids_BT: Tensor, padding: PaddingInfo | None = None) -> tuple[Tensor, PaddingInfo]:
        """The states (N, D) at the real positions of ids padded on the right with 0, and their padding info.

        The padding info is read from the ids if none is given; on a GPU the host then waits for it.
        """
        padding = padding or PaddingInfo.from_mask(ids_BT != PAD_ID)
        encoding_ND = self.positions(padding.position_N, padding.n_positions)
        return self.dropout(self.embedding(padding.gather(ids_BT)) + encoding_ND), padding

    def start(self, n_rows: int) -> Positions:
        """The positions of ``n_rows`` empty rows."""
        return Positions(n_rows, self.embedding.weight.device)

    def extend(self, ids_NT: Tensor, positions: Positions, n_new_N: Tensor | None = None) -> tuple[Tensor, Positions]:
        """The states (N, T, D) of T new tokens of each row, and the positions after them."""
        n_tokens = ids_NT.shape[1]
        encoding_NTD = self.positions(positions.next_positions(n_tokens, n_new_N), positions.longest + n_tokens)
        return self.dropout(self.embedding(ids_NT) + encoding_NTD), positions.advance(n_tokens, n_new_N)
