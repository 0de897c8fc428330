"""Output layers: from states to logits and to the loss. Section 3.4.

Shapes: N positions, D d_model, V vocabulary, P prediction heads.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.loss import LossConfig, LossSum, cross_entropy, r_drop
from transduce.model.embedding import TokenEmbedding
from transduce.text import PAD_ID

__all__ = [
    "FurtherHeads", "LinearOutput", "MultiHeadOutput", "OutputLayer", "ScalarOutput", "TiedOutput", "VocabularyOutput",
]  # fmt: skip

DEFAULT_LOSS = LossConfig()


class OutputLayer(Protocol):
    """The last layer of a model: one or several predictions over the vocabulary, or a scalar."""

    def logits(self, states_ND: Tensor, /) -> Tensor:
        """Logits (N, V) or (N, P, V), or a scalar per position, (N,)."""

    def loss(self, states_ND: Tensor, targets_N: Tensor, /, config: LossConfig = DEFAULT_LOSS) -> LossSum:
        """The loss against the targets, summed over positions."""


class VocabularyOutput(nn.Module):
    """Output projection (V, D) and softmax, with cross-entropy, label smoothing and R-Drop.

    Deviates: a ``bias`` (V,) is possible; None is the paper.
    """

    weight: nn.Parameter | Tensor
    bias: nn.Parameter | Tensor | None  # of each token; set by the subclass

    def logits(self, states_ND: Tensor) -> Tensor:
        """Logits, (N, V)."""
        return F.linear(states_ND, self.weight, self.bias)

    def loss(self, states_ND: Tensor, targets_N: Tensor, config: LossConfig = DEFAULT_LOSS) -> LossSum:
        """Cross-entropy of the targets (N,), or R-Drop if the states are those of two passes, (2, N, D)."""
        eps_ls, smoothing, weight = config.eps_ls, config.smoothing, self.weight
        if self.bias is not None:  # as one more feature, which is always 1
            states_ND = F.pad(states_ND, (0, 1), value=1.0)
            weight = torch.cat((weight, self.bias.unsqueeze(1)), dim=1)
        if states_ND.ndim == 3:
            return r_drop(states_ND, weight, targets_N, eps_ls=eps_ls, smoothing=smoothing, alpha=config.r_drop)
        return cross_entropy(states_ND, weight, targets_N, eps_ls=eps_ls, smoothing=smoothing)


class TiedOutput(VocabularyOutput):
    """The output projection tied to the token embedding. Section 3.4."""

    def __init__(self, embedding: TokenEmbedding, *, has_bias: bool = False) -> None:
        super().__init__()
        self.embedding = embedding
        self.bias = nn.Parameter(torch.empty(embedding.num_embeddings)) if has_bias else None

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """The embedding's weight."""
        return self.embedding.weight


class LinearOutput(VocabularyOutput):
    """An untied output projection."""

    def __init__(self, d_model: int, vocab_size: int, *, has_bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Linear(d_model, vocab_size, bias=False).weight  # torch's default initialisation
        self.bias = nn.Parameter(torch.empty(vocab_size)) if has_bias else None


class FurtherHeads(nn.Module):
    """Heads that predict the tokens after the next one: residual feed-forward networks before one output layer.

    Stern, Shazeer and Uszkoreit (2018).
    """

    def __init__(self, d_model: int, *, n_heads: int) -> None:
        super().__init__()
        self.w_1 = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(n_heads))
        self.w_2 = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(n_heads))

    def __len__(self) -> int:
        return len(self.w_1)

    def head(self, index: int, states_ND: Tensor) -> Tensor:
        """The states (N, D) of the head that predicts the token ``index + 2`` positions ahead."""
        hidden_ND: Tensor = self.w_2[index](F.relu(self.w_1[index](states_ND)))
        return states_ND + hidden_ND

    def ahead(self, states_ND: Tensor) -> Tensor:
        """The states of all these heads, (N, P, D)."""
        return torch.stack([self.head(index, states_ND) for index in range(len(self))], dim=1)


class MultiHeadOutput(FurtherHeads):
    """P heads over one vocabulary: head p predicts the token p positions ahead. The first head is ``output`` itself."""

    def __init__(self, output: VocabularyOutput, d_model: int, *, n_heads: int) -> None:
        super().__init__(d_model, n_heads=n_heads - 1)
        self.output = output

    def states(self, states_ND: Tensor) -> Tensor:
        """The states of all heads, (N, P, D)."""
        return torch.cat([states_ND.unsqueeze(1), self.ahead(states_ND)], dim=1)

    def logits(self, states_ND: Tensor) -> Tensor:
        """Logits, (N, P, V)."""
        return self.output.logits(self.states(states_ND))

    def loss(self, states_ND: Tensor, targets_NP: Tensor, config: LossConfig = DEFAULT_LOSS) -> LossSum:
        """Cross-entropy of the targets (N, P), summed over all heads; targets equal to ``PAD_ID`` are ignored."""
        is_target_NP = targets_NP != PAD_ID
        return self.output.loss(self.states(states_ND)[is_target_NP], targets_NP[is_target_NP], config)


class ScalarOutput(nn.Module):
    """A scalar per position, such as a reward or a value, with squared error."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d_model, 1)

    def logits(self, states_ND: Tensor) -> Tensor:
        """The scalars, (N,)."""
        out_N1: Tensor = self.linear(states_ND)
        return out_N1.squeeze(-1)

    def loss(self, states_ND: Tensor, targets_N: Tensor, config: LossConfig = DEFAULT_LOSS) -> LossSum:
        """Half the squared error against the targets (N,), summed."""
        loss = 0.5 * (self.logits(states_ND).float() - targets_N).square().sum()
        return LossSum(loss, loss.detach(), len(targets_N))
