"""Adaptive softmax with two levels (Grave et al., 2017, with one cluster).

The first level has the frequent words and one cluster entry for all others; the second level has the words of the
cluster. P(word) is the first level's, or P(cluster) P(word | cluster); only rare words need the second level.

Shapes: N positions, M positions with a rare word, D d_model, V vocabulary, P entries of the first level,
R rare words.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transduce.errors import ConfigError
from transduce.loss import LossSum

__all__ = ["TwoLevelSoftmax"]


class TwoLevelSoftmax(nn.Module):
    """An output layer over ids ordered by descending frequency.

    Rare words share a projection to ``d_tail``, since there is little data for each. Weights are drawn from torch's
    global generator.

    Raises ConfigError unless there are both frequent and rare words.

    >>> layer = TwoLevelSoftmax(8, 100, n_frequent=20, d_tail=2)
    >>> log_p_NV = layer.log_probabilities(torch.randn(3, 8))
    >>> log_p_NV.shape, bool(torch.allclose(log_p_NV.exp().sum(dim=1), torch.ones(3)))
    (torch.Size([3, 100]), True)
    """

    def __init__(self, d_model: int, vocab_size: int, *, n_frequent: int, d_tail: int) -> None:
        super().__init__()
        if not 0 < n_frequent < vocab_size:
            raise ConfigError(f"n_frequent must be from 1 to {vocab_size - 1} (vocab_size - 1), got {n_frequent}")
        self.n_frequent = n_frequent
        self.head = nn.Linear(d_model, n_frequent + 1, bias=False)  # the last entry is the cluster
        self.projection = nn.Linear(d_model, d_tail, bias=False)
        self.tail = nn.Linear(d_tail, vocab_size - n_frequent, bias=False)

    def log_probabilities(self, states_ND: Tensor) -> Tensor:
        """Return the log-probabilities of all words, (N, V)."""
        head_NP = self.head(states_ND).log_softmax(dim=1)
        frequent, cluster_N1 = head_NP[:, :-1], head_NP[:, -1:]
        return torch.cat((frequent, cluster_N1 + self._tail_log_softmax(states_ND)), dim=1)

    def loss(self, states_ND: Tensor, targets_N: Tensor) -> LossSum:
        """Return the cross-entropy of the targets."""
        loss = -self.log_p_of(states_ND, targets_N).sum()
        return LossSum(loss, loss.detach(), len(targets_N))

    def log_p_of(self, states_ND: Tensor, ids_N: Tensor) -> Tensor:
        """Return the log-probability of one word per position, (N,); only rare words need the second level."""
        is_rare_N = ids_N >= self.n_frequent
        entry_N1 = ids_N.clamp(max=self.n_frequent).unsqueeze(1)
        log_p_N: Tensor = self.head(states_ND).log_softmax(dim=1).gather(1, entry_N1).squeeze(1)
        within_M1 = (ids_N[is_rare_N] - self.n_frequent).unsqueeze(1)
        tail_M = self._tail_log_softmax(states_ND[is_rare_N]).gather(1, within_M1).squeeze(1)
        return log_p_N.masked_scatter(is_rare_N, log_p_N[is_rare_N] + tail_M)

    def most_probable(self, states_ND: Tensor) -> Tensor:
        """Return the most probable word of each position, (N,).

        If a frequent word is at least as probable as the whole cluster, the second level is skipped.
        """
        head_NP = self.head(states_ND).log_softmax(dim=1)
        best_N, ids_N = head_NP[:, :-1].max(dim=1)
        needs_tail_N = head_NP[:, -1] > best_N
        tail_M, within_M = self._tail_log_softmax(states_ND[needs_tail_N]).max(dim=1)
        is_rare_M = head_NP[needs_tail_N, -1] + tail_M > best_N[needs_tail_N]
        best_M = torch.where(is_rare_M, within_M + self.n_frequent, ids_N[needs_tail_N])
        most_probable_N: Tensor = ids_N.masked_scatter(needs_tail_N, best_M)
        return most_probable_N

    def _tail_log_softmax(self, states_MD: Tensor) -> Tensor:
        """Return log P(word | cluster), (M, R)."""
        log_p_MR: Tensor = self.tail(self.projection(states_MD)).log_softmax(dim=1)
        return log_p_MR
