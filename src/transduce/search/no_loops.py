"""A processor that keeps a search from repeating itself. Not in the paper.

Shapes: B sentences, N rows of the decoding batch, V vocabulary, J places of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.search.processor import Prefixes

__all__ = ["NoLoops", "blocked"]


@dataclass(frozen=True, slots=True, eq=False)
class NoLoops:
    """A processor by which no unit of an output follows itself more often than allowed.

    >>> prefixes = Prefixes(torch.tensor([0]), torch.tensor([[1, 5, 6, 6]]), torch.tensor([True]))
    >>> NoLoops([[2]])(torch.zeros(1, 8), prefixes).tolist()
    [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -inf, 0.0]]
    """

    max_repeats: Sequence[Sequence[int]]  # of each sentence: how often units of 1, 2, ... tokens may follow each other

    def __call__(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """Set the log-probabilities of tokens that would complete one repetition too many to -inf, in place."""
        ids_NT, device = prefixes.ids_NT[:, 1:], log_probs_NV.device
        limits_BJ = torch.tensor(self.max_repeats, device=device)
        limits_NJ = limits_BJ[prefixes.sentences_N.to(device)]
        for unit in range(1, min(limits_NJ.shape[1], ids_NT.shape[1]) + 1):
            is_same_NT = ids_NT[:, unit:] == ids_NT[:, :-unit]
            run_N = is_same_NT.flip(1).long().cumprod(1).sum(1)  # tokens at the end that equal the one a unit before
            is_full_N = run_N >= limits_NJ[:, unit - 1] * unit - 1
            blocked(log_probs_NV, ids_NT[:, -unit, None], is_full_N[:, None])
        return log_probs_NV


def blocked(log_probs_NV: Tensor, ids_NJ: Tensor, is_blocked_NJ: Tensor) -> Tensor:
    """Set the log-probabilities of the blocked ones among some tokens of each row to -inf, in place."""
    penalties_NJ = torch.zeros_like(ids_NJ, dtype=log_probs_NV.dtype).masked_fill_(is_blocked_NJ, -torch.inf)
    return log_probs_NV.scatter_add_(1, ids_NJ, penalties_NJ)
