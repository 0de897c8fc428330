"""The positional encodings that the notes discuss, and what can be measured of each. Section 3.5.

Shapes: T positions of a sentence, N rows of a list (words or positions), D d_model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.model import LAYER_NORM_EPS, sinusoid

__all__ = [
    "COMPARED_POSITION", "OPTIONS", "SHORT_LENGTH", "Option", "OptionPositions", "cosine_with_word",
    "distance_of_neighbours", "error_of_best_map", "fractions", "integers", "min_distance", "no_positions",
    "shift_after_layer_norm", "shift_of_position", "spread_of_products",
]  # fmt: skip

Option = Callable[[int, int], Tensor]  # of n_positions and d_model: (T, D)


def integers(n_positions: int, d_model: int) -> Tensor:
    """Return option 1 of the notes: every element is the position, (T, D).

    >>> integers(3, 2).tolist()
    [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    """
    return torch.arange(n_positions, dtype=torch.float64).unsqueeze(1).expand(n_positions, d_model)


def fractions(n_positions: int, d_model: int) -> Tensor:
    """Return option 2: every element is the position, from 0 (first) to 1 (last), (T, D).

    >>> fractions(3, 2).tolist()
    [[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]
    """
    return integers(n_positions, d_model) / max(1, n_positions - 1)


def no_positions(n_positions: int, d_model: int) -> Tensor:
    """Return zeros, the baseline without positions, (T, D)."""
    return torch.zeros(n_positions, d_model, dtype=torch.float64)


class OptionPositions(nn.Module):
    """An option as position module; all sentences of a batch have the same length, which fractions need."""

    def __init__(self, option: Option, d_model: int) -> None:
        super().__init__()
        self.option, self.d_model = option, d_model

    def forward(self, position_N: Tensor, n_positions: int) -> Tensor:
        """Return the encodings (N, D) of positions in sentences of ``n_positions``."""
        return F.embedding(position_N, self.option(n_positions, self.d_model).float())


OPTIONS: Mapping[str, Option] = {"integers": integers, "fractions": fractions, "sinusoids": sinusoid}
SHORT_LENGTH = 10  # length of the sentence to compare with
COMPARED_POSITION = 5  # position to compare


def distance_of_neighbours(positions: Option, n_positions: int, d_model: int) -> float:
    """Return the distance of the last two positions of a sentence."""
    last_2D = positions(n_positions, d_model)[-2:]
    return float((last_2D[1] - last_2D[0]).norm())


def shift_of_position(positions: Option, n_positions: int, d_model: int) -> float:
    """Return the distance of position 5 from position 5 in a sentence of 10."""
    long_D, short_D = (
        positions(n_positions, d_model)[COMPARED_POSITION],
        positions(SHORT_LENGTH, d_model)[COMPARED_POSITION],
    )
    return float((long_D - short_D).norm())


def min_distance(positions: Option, n_positions: int, d_model: int) -> float:
    """Return the minimum distance of any two positions of a sentence; 0 if two are equal."""
    encoding_TD = positions(n_positions, d_model).contiguous()
    distance_TT = torch.cdist(encoding_TD, encoding_TD)
    return float(distance_TT.fill_diagonal_(math.inf).min())


def spread_of_products(positions: Option, n_positions: int, d_model: int, offset: int) -> float:
    """Return the relative standard deviation of PE(p) · PE(p + offset) over p; 0 if it depends on the offset only."""
    encoding_TD = positions(n_positions, d_model)
    product_T = (encoding_TD[offset:] * encoding_TD[: n_positions - offset]).sum(dim=1)
    return float(product_T.std(correction=0) / product_T.mean().abs())


def error_of_best_map(positions: Option, n_positions: int, d_model: int, offset: int) -> float:
    """Return the relative residual of the best matrix M with PE(p + offset) = M PE(p). Section 3.5."""
    encoding_TD = positions(n_positions, d_model)
    before_TD, after_TD = encoding_TD[: n_positions - offset], encoding_TD[offset:]
    map_DD = torch.linalg.lstsq(before_TD, after_TD, driver="gelsd").solution
    return float((before_TD @ map_DD - after_TD).norm() / after_TD.norm())


def cosine_with_word(encoding_TD: Tensor, words_ND: Tensor) -> Tensor:
    """Return the cosine of an embedding with and without each position, mean over words, (T,)."""
    summed_TND = words_ND + encoding_TD.unsqueeze(1)
    return F.cosine_similarity(summed_TND, words_ND.unsqueeze(0), dim=2).mean(dim=1)


def shift_after_layer_norm(encoding_D: Tensor, words_ND: Tensor) -> float:
    """Return the distance by which a position moves embeddings after layer norm, relative to their norm."""
    before_ND, after_ND = (
        F.layer_norm(each_ND, each_ND.shape[1:], eps=LAYER_NORM_EPS) for each_ND in (words_ND, words_ND + encoding_D)
    )
    return float((after_ND - before_ND).norm() / before_ND.norm())
