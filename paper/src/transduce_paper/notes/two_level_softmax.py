"""Adaptive softmax with two levels (Grave et al., 2017).

The first level has the frequent words and one entry for each cluster of other words; the second level has the words
within each cluster. P(word) is the first level's, or P(cluster) P(word | cluster); only a word in a cluster needs the
second level, and only its cluster. ``torch.nn.AdaptiveLogSoftmaxWithLoss`` is the same layer; it is written out here.

Shapes: N positions, M positions with a word in one cluster, D d_model, V vocabulary, P entries of the first level,
J clusters, R words in a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from transduce.errors import ConfigError
from transduce.loss import LossSum

__all__ = ["LAYOUTS", "Layout", "TwoLevelSoftmax"]


class TwoLevelSoftmax(nn.Module):
    """An output layer over ids ordered by descending frequency.

    Cluster c has the ids from ``starts[c]`` up to the next cluster's, or the end of the vocabulary; ids below
    ``starts[0]`` are the frequent words. The words of a cluster share a projection to ``widths[c]``, since there is
    little data for each. Weights are drawn from torch's global generator.

    Raises ConfigError unless there are frequent words, and words in every cluster; or without a width for each cluster.

    >>> layer = TwoLevelSoftmax(8, 100, starts=(20, 50), widths=(4, 2))
    >>> log_p_NV = layer.log_probabilities(torch.randn(3, 8))
    >>> log_p_NV.shape, bool(torch.allclose(log_p_NV.exp().sum(dim=1), torch.ones(3)))
    (torch.Size([3, 100]), True)
    """

    def __init__(self, d_model: int, vocab_size: int, *, starts: Sequence[int], widths: Sequence[int]) -> None:
        super().__init__()
        bounds = (0, *starts, vocab_size)
        if not starts or any(start >= end for start, end in pairwise(bounds)):
            raise ConfigError(f"starts of clusters must ascend from 1 to {vocab_size - 1}, got {list(starts)}")
        if len(widths) != len(starts):
            raise ConfigError(f"each of the {len(starts)} clusters needs a width, got widths = {list(widths)}")
        self.n_frequent, self.starts = starts[0], tuple(starts)
        sizes = [end - start for start, end in pairwise(bounds[1:])]
        self.head = nn.Linear(d_model, self.n_frequent + len(starts), bias=False)  # the last entries are the clusters
        self.projections = nn.ModuleList(nn.Linear(d_model, width, bias=False) for width in widths)
        self.clusters = nn.ModuleList(nn.Linear(*shape, bias=False) for shape in zip(widths, sizes, strict=True))
        self.register_buffer("starts_J", torch.tensor(starts), persistent=False)

    def log_probabilities(self, states_ND: Tensor) -> Tensor:
        """Return the log-probabilities of all words, (N, V)."""
        frequent, of_cluster_NJ = self._first_level(states_ND)
        within = [of_cluster_NJ[:, c, None] + self._within(c, states_ND) for c in range(len(self.starts))]
        return torch.cat((frequent, *within), dim=1)

    def loss(self, states_ND: Tensor, targets_N: Tensor) -> LossSum:
        """Return the cross-entropy of the targets."""
        loss = -self.log_p_of(states_ND, targets_N).sum()
        return LossSum(loss, loss.detach(), len(targets_N))

    def log_p_of(self, states_ND: Tensor, ids_N: Tensor) -> Tensor:
        """Return the log-probability of one word per position, (N,); the second level is computed where needed."""
        number_N = self.cluster_numbers(ids_N)
        entry_N = torch.where(number_N == 0, ids_N, self.n_frequent + number_N - 1)
        log_p_N: Tensor = self.head(states_ND).log_softmax(dim=1).gather(1, entry_N[:, None]).squeeze(1)
        for c, start in enumerate(self.starts):
            index_M = (number_N == c + 1).nonzero().squeeze(1)
            within_M = self._within(c, states_ND[index_M]).gather(1, (ids_N[index_M] - start)[:, None]).squeeze(1)
            log_p_N = log_p_N.index_add(0, index_M, within_M)
        return log_p_N

    def most_probable(self, states_ND: Tensor) -> Tensor:
        """Return the most probable word of each position, (N,).

        A cluster is skipped where a word found before is at least as probable as the whole cluster.
        """
        frequent, of_cluster_NJ = self._first_level(states_ND)
        best_N, ids_N = frequent.max(dim=1)
        for c, start in enumerate(self.starts):
            index_M = (of_cluster_NJ[:, c] > best_N).nonzero().squeeze(1)
            within_M, words_M = self._within(c, states_ND[index_M]).max(dim=1)
            log_p_M = of_cluster_NJ[index_M, c] + within_M
            is_better_M = log_p_M > best_N[index_M]
            ids_N[index_M] = torch.where(is_better_M, start + words_M, ids_N[index_M])
            best_N[index_M] = torch.where(is_better_M, log_p_M, best_N[index_M])
        return ids_N

    def level_by_level(self, states_ND: Tensor) -> Tensor:
        """Return the most probable entry of the first level or, if that is a cluster, its most probable word, (N,).

        This word is not always the most probable one: the best word of a probable cluster may have less probability
        than a frequent word, or than a word of another cluster.
        """
        ids_N: Tensor = self.head(states_ND).argmax(dim=1)
        number_N = ids_N - self.n_frequent
        for c, start in enumerate(self.starts):
            index_M = (number_N == c).nonzero().squeeze(1)
            ids_N[index_M] = start + self._within(c, states_ND[index_M]).argmax(dim=1)
        return ids_N

    def cluster_numbers(self, ids_N: Tensor) -> Tensor:
        """Return the number of each word's cluster counted from 1; 0 for frequent words, (N,)."""
        starts_J: Tensor = self.get_buffer("starts_J")
        return torch.bucketize(ids_N, starts_J, right=True)

    def _first_level(self, states_ND: Tensor) -> tuple[Tensor, Tensor]:
        """Return log P of the frequent words, and of the clusters, (N, J)."""
        log_p_NP: Tensor = self.head(states_ND).log_softmax(dim=1)
        return log_p_NP[:, : self.n_frequent], log_p_NP[:, self.n_frequent :]

    def _within(self, c: int, states_MD: Tensor) -> Tensor:
        """Return log P(word | cluster c), (M, R)."""
        log_p_MR: Tensor = self.clusters[c](self.projections[c](states_MD)).log_softmax(dim=1)
        return log_p_MR


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the clusters of a vocabulary of V words start, and how wide they are.

    >>> Layout((5,), (4,)).share_of_multiplications
    0.4
    """

    starts: tuple[int, ...]  # cluster c starts at word V / starts[c]
    narrower: tuple[int, ...]  # its width is d_model / narrower[c]

    def layer(self, d_model: int, vocab_size: int) -> TwoLevelSoftmax:
        """Return a new layer."""
        starts = [vocab_size // each for each in self.starts]
        return TwoLevelSoftmax(d_model, vocab_size, starts=starts, widths=[d_model // each for each in self.narrower])

    @property
    def share_of_multiplications(self) -> float:
        """The multiplications for all words as a share of full softmax's, without the projections, which are small."""
        ends = (*self.starts[1:], 1)
        within = sum(
            (1 / end - 1 / start) / narrower
            for start, end, narrower in zip(self.starts, ends, self.narrower, strict=True)
        )
        return 1 / self.starts[0] + within


# One cluster: four fifths of the words, at a quarter of the width as in Grave et al. (2017). Three: each has three
# times the words of the one before, at half its width.
LAYOUTS: Mapping[str, Layout] = {"one cluster": Layout((5,), (4,)), "three clusters": Layout((27, 9, 3), (2, 4, 8))}
