"""Compatibility functions: the score of a query and a key, in place of q . k / sqrt(d_k). Sections 3.2.1 and 6.2 (B).

They are for experiments: only the reference path of attention has them, and other programs cannot read such models.

Shapes: B sentences, T query positions, S key positions, H heads, K d_k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import assert_never

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.model.stack_config import StackConfig

__all__ = [
    "AdditiveCompatibility",
    "BilinearCompatibility",
    "CompatibilityFunction",
    "cosine",
    "dot_product",
    "make_compatibility",
]

# Queries (B, H, T, K) and keys (B, H, S, K) to scores (B, H, T, S).
CompatibilityFunction = Callable[[Tensor, Tensor], Tensor]


def make_compatibility(config: StackConfig) -> CompatibilityFunction | None:
    """The compatibility function of an attention layer; None for the paper's, which ``dot_product_attention`` has."""
    match config.compatibility:
        case "scaled":
            return None
        case "dot":
            return dot_product
        case "cosine":
            return cosine
        case "additive":
            return AdditiveCompatibility(config.n_heads, config.d_k)
        case "bilinear":
            return BilinearCompatibility(config.n_heads, config.d_k)
        case never:
            assert_never(never)


def dot_product(q_BHTK: Tensor, k_BHSK: Tensor) -> Tensor:
    """q . k, unscaled."""
    return q_BHTK @ k_BHSK.transpose(-2, -1)


def cosine(q_BHTK: Tensor, k_BHSK: Tensor) -> Tensor:
    """sqrt(d_k) cos(q, k): q . k / sqrt(d_k) of queries and keys with the length sqrt(d_k) of random ones (footnote 4).

    A zero query or key has the score 0. Without the factor every weight would be within a factor of e^2 of the others.
    """
    unit_BHTK, unit_BHSK = F.normalize(q_BHTK, dim=-1), F.normalize(k_BHSK, dim=-1)
    return dot_product(unit_BHTK, unit_BHSK) * math.sqrt(q_BHTK.shape[-1])


class AdditiveCompatibility(nn.Module):
    """v . tanh(q + k), a feed-forward network with one hidden layer. Bahdanau, Cho and Bengio (2014).

    The hidden layer's matrices are the projections of multi-head attention, which made q and k. Each head has its v.
    Its memory is K times that of the scores.
    """

    def __init__(self, n_heads: int, d_k: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_heads, 1, d_k))

    def forward(self, q_BHTK: Tensor, k_BHSK: Tensor) -> Tensor:
        """(B, H, T, K) and (B, H, S, K) to (B, H, T, S)."""
        hidden_BHTSK = (q_BHTK.unsqueeze(3) + k_BHSK.unsqueeze(2)).tanh()
        v_H1K1 = self.weight.transpose(1, 2).unsqueeze(1).to(hidden_BHTSK.dtype)
        return (hidden_BHTSK @ v_H1K1).squeeze(-1)


class BilinearCompatibility(nn.Module):
    """q . A k / sqrt(d_k) with a matrix A for each head, which is not tied to the keys' projection."""

    def __init__(self, n_heads: int, d_k: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_heads, d_k, d_k))

    def forward(self, q_BHTK: Tensor, k_BHSK: Tensor) -> Tensor:
        """(B, H, T, K) and (B, H, S, K) to (B, H, T, S)."""
        projected_BHTK = q_BHTK @ self.weight.to(q_BHTK.dtype)
        scores_BHTS: Tensor = projected_BHTK @ k_BHSK.transpose(-2, -1) * (q_BHTK.shape[-1] ** -0.5)
        return scores_BHTS
