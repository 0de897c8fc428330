"""Tokens and positions as vectors. Sections 3.4 and 3.5.

Shapes: N positions, D d_model, P positions of a table, V vocabulary.
"""

from __future__ import annotations

import math
from typing import assert_never

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import ConvS2SConfig, TransformerConfig
from transduce.errors import ConfigError, ShapeError

__all__ = ["LearnedPositions", "SinusoidalPositions", "TokenEmbedding", "make_positions", "sinusoid"]


def sinusoid(n_positions: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(the same). Section 3.5.

    Returns (P, D) in float64.

    >>> sinusoid(2, 4)[0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    position_P1 = torch.arange(n_positions, dtype=torch.float64).unsqueeze(1)
    even_D = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i
    angle_PD = position_P1 / 10000.0 ** (even_D / d_model)
    return torch.stack((angle_PD.sin(), angle_PD.cos()), dim=-1).flatten(1)  # interleaved


class TokenEmbedding(nn.Embedding):
    """A row of the table times sqrt(d_model). Section 3.4. The table is ``weight``, (V, D)."""

    def forward(self, ids_N: Tensor) -> Tensor:
        """Ids (N,) to vectors (N, D)."""
        return F.embedding(ids_N, self.weight) * math.sqrt(self.embedding_dim)


class SinusoidalPositions(nn.Module):
    """A table of sinusoids that grows with the longest sentence seen. Nothing of it is saved."""

    N_AT_FIRST = 1024

    table_PD: Tensor

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.register_buffer("table_PD", sinusoid(self.N_AT_FIRST, d_model).float(), persistent=False)

    def forward(self, position_N: Tensor, n_positions: int) -> Tensor:
        """The encoding (N, D) of each place; ``n_positions`` is above all of them."""
        table_PD = self.table_PD
        if n_positions > len(table_PD):  # another thread may make it longer, too: each reads the one it knows
            table_PD = self.table_PD = sinusoid(2 * n_positions, self.d_model).to(table_PD)
        return F.embedding(position_N, table_PD)


class LearnedPositions(nn.Embedding):
    """One learned vector a place. Section 3.5 and Table 3 (E)."""

    def __init__(self, config: TransformerConfig | ConvS2SConfig) -> None:
        super().__init__(config.n_positions, config.d_model)

    def forward(self, position_N: Tensor, n_positions: int) -> Tensor:  # type: ignore[override]
        """The vector (N, D) of each place. Raises ShapeError past the end of the table."""
        if n_positions > self.num_embeddings:
            raise ShapeError(
                f"a sentence of {n_positions} tokens, but the model has learned {self.num_embeddings} positions; "
                "cut it, or train with a larger n_positions or with positions = 'sinusoidal'"
            )
        return super().forward(position_N)


def make_positions(config: TransformerConfig | ConvS2SConfig) -> SinusoidalPositions | LearnedPositions:
    """The positional encoding that the configuration asks for. Raises ConfigError for one that needs more than that."""
    match config.positions:
        case "sinusoidal":
            return SinusoidalPositions(config.d_model)
        case "words":
            raise ConfigError("positions = 'words' needs a front end that knows where words begin")
        case "learned":
            return LearnedPositions(config)
        case _:
            assert_never(config.positions)
