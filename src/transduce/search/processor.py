"""What changes the probabilities of next tokens on their way from a model to a search: constraints, for instance."""

# N rows, V vocabulary, T tokens so far, the begin symbol included

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from transduce.search.constraint import Constraint

__all__ = ["Constrained", "LogProbsProcessor", "Prefixes"]


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The outputs so far, one row for each beam of each sentence."""

    sentences_N: Tensor  # place of each row's sentence in the input
    ids_NT: Tensor
    is_alive_N: Tensor  # False: an empty place of a beam, which is of no account


class LogProbsProcessor(Protocol):
    """A function from log-probabilities of next tokens to those that a search shall go by."""

    def __call__(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """(N, V) to (N, V), which may be the same tensor, changed."""


@dataclass(frozen=True, slots=True)
class Constrained:
    """A constraint as a processor: what it does not allow has probability zero, all else keeps the model's own.

    >>> prefixes = Prefixes(torch.tensor([0, 0]), torch.tensor([[1, 2], [1, 2]]), torch.tensor([True, False]))
    >>> never_twice = Constrained(lambda sentence, prefix: [token for token in range(3) if token not in prefix])
    >>> never_twice(torch.tensor([[0.5, 0.25, 0.25]] * 2).log(), prefixes).exp().tolist()
    [[0.5, 0.25, 0.0], [0.5, 0.25, 0.25]]
    """

    constraint: Constraint

    def __call__(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """Block what may not come next."""
        return log_probs_NV.masked_fill_(self.blocked(log_probs_NV, prefixes), -torch.inf)

    def blocked(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """(N, V), true for what may not come next. The constraint is not asked about rows that are not alive."""
        is_blocked_NV = torch.ones(log_probs_NV.shape, dtype=torch.bool)
        columns = (prefixes.sentences_N, prefixes.ids_NT, prefixes.is_alive_N)
        for row, (sentence, ids, is_alive) in enumerate(zip(*(each.tolist() for each in columns), strict=True)):
            allowed = self.constraint(sentence, tuple(ids[1:])) if is_alive else range(log_probs_NV.shape[1])
            is_blocked_NV[row, list(allowed)] = False
        return is_blocked_NV.to(log_probs_NV.device)
