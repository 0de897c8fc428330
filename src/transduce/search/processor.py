"""Processors of next-token log-probabilities, applied between model and search, such as constraints.

Shapes: N rows of the decoding batch, V vocabulary, T tokens so far including BOS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from transduce.search.constraint import Constraint

__all__ = ["Constrained", "LogProbsProcessor", "Prefixes"]


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The prefixes of a decoding batch, one row for each beam of each sentence."""

    sentences_N: Tensor  # index of each row's sentence in the input
    ids_NT: Tensor
    is_alive_N: Tensor  # False: an empty entry of the beam, to be ignored


class LogProbsProcessor(Protocol):
    """A function that changes the log-probabilities of next tokens before the search uses them."""

    def __call__(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """(N, V) to (N, V); may modify ``log_probs_NV`` in place."""


@dataclass(frozen=True, slots=True)
class Constrained:
    """A constraint as a processor: tokens it does not allow get probability zero, without renormalisation.

    >>> prefixes = Prefixes(torch.tensor([0, 0]), torch.tensor([[1, 2], [1, 2]]), torch.tensor([True, False]))
    >>> no_repeats = Constrained(lambda sentence, prefix: [token for token in range(3) if token not in prefix])
    >>> no_repeats(torch.tensor([[0.5, 0.25, 0.25]] * 2).log(), prefixes).exp().tolist()
    [[0.5, 0.25, 0.0], [0.5, 0.25, 0.25]]
    """

    constraint: Constraint

    def __call__(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """Set the log-probabilities of blocked tokens to -inf, in place."""
        return log_probs_NV.masked_fill_(self.blocked(log_probs_NV, prefixes), -torch.inf)

    def blocked(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """The mask (N, V) of tokens that are not allowed; nothing is blocked in rows that are not alive."""
        is_blocked_NV = torch.ones(log_probs_NV.shape, dtype=torch.bool)
        columns = (prefixes.sentences_N, prefixes.ids_NT, prefixes.is_alive_N)
        for row, (sentence, ids, is_alive) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            allowed = self.constraint(sentence, tuple(ids[1:])) if is_alive else range(log_probs_NV.shape[1])
            is_blocked_NV[row, list(allowed)] = False
        return is_blocked_NV.to(log_probs_NV.device)
