"""Processors of next-token log-probabilities, applied between model and search, such as constraints.

Shapes: N rows of the decoding batch, V vocabulary, T tokens so far including BOS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

__all__ = ["Chain", "Constrained", "Constraint", "LogProbsProcessor", "Prefixes"]


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


class Constraint(Protocol):
    """A function from a prefix to the tokens allowed next, by a grammar for example. It depends on its arguments only.

    It is called for every beam at every step, only with prefixes that it allowed. Each extends, by one token, a prefix
    of the previous step, so caching the state of that prefix makes a call cheap.
    """

    def __call__(self, sentence: int, prefix: tuple[int, ...], /) -> Sequence[int]:
        """The ids allowed after ``prefix``, which excludes BOS; ``sentence`` counts from 0."""


@dataclass(frozen=True, slots=True)
class Constrained:
    """A constraint as a processor: tokens that it does not allow get probability zero.

    Among the ``pooled`` tokens the allowed ones get the probability of all; nothing else is renormalised.

    >>> prefixes = Prefixes(torch.tensor([0, 0]), torch.tensor([[1, 2], [1, 2]]), torch.tensor([True, False]))
    >>> no_repeats = Constrained(lambda sentence, prefix: [token for token in range(3) if token not in prefix])
    >>> no_repeats(torch.tensor([[0.5, 0.25, 0.25]] * 2).log(), prefixes).exp().tolist()
    [[0.5, 0.25, 0.0], [0.5, 0.25, 0.25]]
    """

    constraint: Constraint
    pooled: Sequence[int] = ()

    def __call__(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """Set the log-probabilities of blocked tokens to -inf, in place."""
        blocked_NV = self._blocked(log_probs_NV, prefixes)
        if not self.pooled:
            return log_probs_NV.masked_fill_(blocked_NV, -torch.inf)
        pooled = torch.tensor(self.pooled, device=log_probs_NV.device)
        total_N1 = log_probs_NV[:, pooled].logsumexp(dim=1, keepdim=True)
        log_probs_NV.masked_fill_(blocked_NV, -torch.inf)
        allowed_N1 = log_probs_NV[:, pooled].logsumexp(dim=1, keepdim=True)
        log_probs_NV[:, pooled] += torch.where(allowed_N1 > -torch.inf, total_N1 - allowed_N1, 0.0)
        return log_probs_NV

    def _blocked(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """The mask (N, V) of tokens that are not allowed; nothing is blocked in rows that are not alive."""
        is_blocked_NV = torch.ones(log_probs_NV.shape, dtype=torch.bool)
        columns = (prefixes.sentences_N, prefixes.ids_NT, prefixes.is_alive_N)
        for row, (sentence, ids, is_alive) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            allowed = self.constraint(sentence, tuple(ids[1:])) if is_alive else range(log_probs_NV.shape[1])
            is_blocked_NV[row, list(allowed)] = False
        return is_blocked_NV.to(log_probs_NV.device)


@dataclass(frozen=True, slots=True)
class Chain:
    """Several processors, one after the other."""

    processors: Sequence[LogProbsProcessor]

    def __call__(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """Apply each in turn."""
        for process in self.processors:
            log_probs_NV = process(log_probs_NV, prefixes)
        return log_probs_NV
