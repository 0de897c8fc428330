"""Token embeddings and positional encodings. Sections 3.4 and 3.5.

Shapes: N positions, D d_model, V vocabulary, P positions of a table, J = D / 2 frequencies.
"""

from __future__ import annotations

import math
from typing import assert_never

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import ConvS2SConfig, LanguageModelConfig, TransformerConfig
from transduce.errors import ConfigError, ShapeError

__all__ = ["LearnedPositions", "SinusoidalPositions", "TokenEmbedding", "make_positions", "sinusoid"]


def sinusoid(n_positions: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) the cosine of the same angle. Section 3.5.

    Returns (P, D) in float64.

    >>> sinusoid(2, 4)[0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    position_P1 = torch.arange(n_positions, dtype=torch.float64).unsqueeze(1)
    even_J = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i
    angle_PJ = position_P1 / 10000.0 ** (even_J / d_model)
    return torch.stack((angle_PJ.sin(), angle_PJ.cos()), dim=-1).flatten(1)  # interleaved


class TokenEmbedding(nn.Embedding):
    """Token embedding: a row of ``weight`` (V, D) times sqrt(d_model). Section 3.4.

    Deviates: without ``is_scaled`` the factor is 1, as in GPT-2 and BERT.
    """

    def __init__(self, vocab_size: int, d_model: int, *, is_scaled: bool = True) -> None:
        super().__init__(vocab_size, d_model)
        self.factor = math.sqrt(d_model) if is_scaled else 1.0

    def forward(self, ids_N: Tensor) -> Tensor:
        """Ids (N,) to vectors (N, D)."""
        return F.embedding(ids_N, self.weight) * self.factor


class SinusoidalPositions(nn.Module):
    """Sinusoidal positional encoding: a table that grows with the longest sentence. It is not saved."""

    INITIAL_POSITIONS = 1024

    table_PD: Tensor

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.register_buffer("table_PD", sinusoid(self.INITIAL_POSITIONS, d_model).float(), persistent=False)

    def forward(self, position_N: Tensor, n_positions: int) -> Tensor:
        """The encoding (N, D) of each position; all positions are below ``n_positions``."""
        table_PD = self.table_PD
        if n_positions > len(table_PD):  # other threads may grow it at the same time: each uses its own reference
            table_PD = self.table_PD = sinusoid(2 * n_positions, self.d_model).to(table_PD)
        return F.embedding(position_N, table_PD)


class LearnedPositions(nn.Embedding):
    """Learned positional embedding. Section 3.5 and Table 3 (E)."""

    def __init__(self, config: TransformerConfig | LanguageModelConfig | ConvS2SConfig) -> None:
        super().__init__(config.n_positions, config.d_model)

    def forward(self, position_N: Tensor, n_positions: int) -> Tensor:  # type: ignore[override]
        """The vector (N, D) of each position. Raises ShapeError past the end of the table."""
        # Rows that differ in length may all be shorter than the bound.
        if n_positions > self.num_embeddings < (n_positions := int(position_N.max()) + 1):
            raise ShapeError(
                f"a sentence of {n_positions} tokens, but the model has learned {self.num_embeddings} positions; "
                "truncate it, or train with a larger n_positions or with positions = 'sinusoidal'"
            )
        return super().forward(position_N)


def make_positions(
    config: TransformerConfig | LanguageModelConfig | ConvS2SConfig,
) -> SinusoidalPositions | LearnedPositions:
    """The positional encoding of a configuration. Raises ConfigError for "words", which needs another front end."""
    match config.positions:
        case "sinusoidal":
            return SinusoidalPositions(config.d_model)
        case "words":
            raise ConfigError("positions = 'words' needs a front end that knows word boundaries, WordPositionFrontEnd")
        case "learned":
            return LearnedPositions(config)
        case _:
            assert_never(config.positions)
