"""Output layers: from states to scores, and to the loss of what should have been said. Section 3.4.

Shapes: N positions, D d_model, V vocabulary, K heads.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.loss import LossConfig, LossSum, cross_entropy, r_drop
from transduce.model.embedding import TokenEmbedding
from transduce.text import PAD_ID

__all__ = ["LinearOutput", "MultiHeadOutput", "OutputLayer", "ScalarOutput", "TiedOutput", "VocabularyOutput"]

PLAIN = LossConfig()


class OutputLayer(Protocol):
    """The last layer of a model: a matrix over the vocabulary, several of them, or one number."""

    def logits(self, states_ND: Tensor, /) -> Tensor:
        """Scores before the softmax, (N, V) or (N, K, V); or one number for each position, (N,)."""

    def loss(self, states_ND: Tensor, targets_N: Tensor, /, config: LossConfig = PLAIN) -> LossSum:
        """The loss of states by what should have been said at each, as a sum over positions."""


class VocabularyOutput(nn.Module):
    """A matrix (V, D) before the softmax: cross-entropy, with smoothed labels and R-Drop."""

    weight: nn.Parameter | Tensor

    def logits(self, states_ND: Tensor) -> Tensor:
        """Scores before the softmax, (N, V)."""
        return F.linear(states_ND, self.weight)

    def loss(self, states_ND: Tensor, targets_N: Tensor, config: LossConfig = PLAIN) -> LossSum:
        """Cross-entropy of targets (N,); the states of two passes, (2, N, D), are R-Drop's."""
        eps_ls, smoothing = config.eps_ls, config.smoothing
        if states_ND.ndim == 3:
            return r_drop(states_ND, self.weight, targets_N, eps_ls=eps_ls, smoothing=smoothing, alpha=config.r_drop)
        return cross_entropy(states_ND, self.weight, targets_N, eps_ls=eps_ls, smoothing=smoothing)


class TiedOutput(VocabularyOutput):
    """The matrix of the token embedding once more. Section 3.4."""

    def __init__(self, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """That of the embedding."""
        return self.embedding.weight


class LinearOutput(VocabularyOutput):
    """A matrix of its own."""

    def __init__(self, d_model: int, vocab_size: int) -> None:
        super().__init__()
        self.weight = nn.Linear(d_model, vocab_size, bias=False).weight  # drawn as torch draws it


class MultiHeadOutput(nn.Module):
    """K heads over one vocabulary: the k-th says the token k places ahead. Stern, Shazeer and Uszkoreit (2018).

    The first head is the plain output. Each other puts a feed-forward network with a residual connection between the
    states and the matrix.
    """

    def __init__(self, output: VocabularyOutput, d_model: int, *, n_heads: int) -> None:
        super().__init__()
        self.output = output
        self.w_1 = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(n_heads - 1))
        self.w_2 = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(n_heads - 1))

    def states(self, states_ND: Tensor) -> Tensor:
        """The states of all heads, (N, K, D)."""
        ahead = [states_ND + w_2(F.relu(w_1(states_ND))) for w_1, w_2 in zip(self.w_1, self.w_2, strict=True)]
        return torch.stack([states_ND, *ahead], dim=1)

    def logits(self, states_ND: Tensor) -> Tensor:
        """Scores before the softmax, (N, K, V)."""
        return self.output.logits(self.states(states_ND))

    def loss(self, states_ND: Tensor, targets_NP: Tensor, config: LossConfig = PLAIN) -> LossSum:
        """Cross-entropy of targets (N, K), summed over all heads; where a target is ``PAD_ID`` there is none."""
        is_said_NP = targets_NP != PAD_ID
        return self.output.loss(self.states(states_ND)[is_said_NP], targets_NP[is_said_NP], config)


class ScalarOutput(nn.Module):
    """One number for each position, as a reward or a value: squared error."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d_model, 1)

    def logits(self, states_ND: Tensor) -> Tensor:
        """(N,)."""
        out_N1: Tensor = self.linear(states_ND)
        return out_N1.squeeze(-1)

    def loss(self, states_ND: Tensor, targets_N: Tensor, config: LossConfig = PLAIN) -> LossSum:
        """Half the squared distance to the targets (N,)."""
        loss = 0.5 * (self.logits(states_ND).float() - targets_N).square().sum()
        return LossSum(loss, loss.detach(), len(targets_N))
