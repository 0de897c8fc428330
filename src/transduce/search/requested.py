"""Processors that the settings of a search ask for. Not in the paper.

Another one is a field of ``ProcessedSearchConfig`` and a class here, in ``REQUESTED``.

Shapes: N rows of the decoding batch, V vocabulary, T tokens so far including BOS, J places of a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from transduce.config import SearchConfig
from transduce.config.search import ProcessedSearchConfig
from transduce.search.forced_prefix import ForcedPrefix
from transduce.search.no_loops import blocked
from transduce.search.processor import Chain, LogProbsProcessor, Prefixes

__all__ = ["REQUESTED", "MinLength", "NoRepeatNgrams", "Requested", "requested_processor"]


class Requested(LogProbsProcessor, Protocol):
    """A processor that a search has if one of these fields has another value than its default."""

    fields: ClassVar[tuple[str, ...]]

    @classmethod
    def of(cls, search: ProcessedSearchConfig, *, eos_id: int) -> LogProbsProcessor:
        """Return the processor of these settings."""


@dataclass(frozen=True, slots=True)
class MinLength:
    """A processor by which an output has at least so many tokens before EOS.

    >>> prefixes = Prefixes(torch.tensor([0]), torch.tensor([[1, 5]]), torch.tensor([True]))
    >>> MinLength(2, eos_id=2)(torch.zeros(1, 4), prefixes).tolist()
    [[0.0, 0.0, -inf, 0.0]]
    """

    fields: ClassVar[tuple[str, ...]] = ("min_length",)
    n_tokens: int
    eos_id: int

    @classmethod
    def of(cls, search: ProcessedSearchConfig, *, eos_id: int) -> MinLength:
        """Return the processor of these settings."""
        return cls(search.min_length, eos_id)

    def __call__(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """Set the log-probability of an early EOS to -inf, in place."""
        if prefixes.ids_NT.shape[1] <= self.n_tokens:
            log_probs_NV[:, self.eos_id] = -torch.inf
        return log_probs_NV


@dataclass(frozen=True, slots=True)
class NoRepeatNgrams:
    """A processor by which no output has an n-gram twice, as ``no_repeat_ngram_size`` of other toolkits.

    >>> prefixes = Prefixes(torch.tensor([0]), torch.tensor([[1, 5, 6, 5]]), torch.tensor([True]))
    >>> NoRepeatNgrams(2)(torch.zeros(1, 8), prefixes).tolist()
    [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -inf, 0.0]]
    """

    fields: ClassVar[tuple[str, ...]] = ("no_repeat_ngram",)
    n: int

    @classmethod
    def of(cls, search: ProcessedSearchConfig, *, eos_id: int) -> NoRepeatNgrams:
        """Return the processor of these settings."""
        assert search.no_repeat_ngram is not None
        return cls(search.no_repeat_ngram)

    def __call__(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """Set the log-probabilities of tokens that would end a second n-gram to -inf, in place."""
        ids_NT = prefixes.ids_NT[:, 1:]
        n_places = ids_NT.shape[1] - self.n + 1  # where an earlier n-gram may begin
        if n_places < 1:
            return log_probs_NV
        is_alike_NJ = torch.ones(len(ids_NT), n_places, dtype=torch.bool, device=ids_NT.device)
        for offset in range(self.n - 1):
            is_alike_NJ &= ids_NT[:, offset : offset + n_places] == ids_NT[:, n_places + offset, None]
        return blocked(log_probs_NV, ids_NT[:, self.n - 1 :], is_alike_NJ)


REQUESTED: tuple[type[Requested], ...] = (MinLength, NoRepeatNgrams)  # in the order in which they are applied


def requested_processor(
    search: SearchConfig, process: LogProbsProcessor | None = None, /, *, eos_id: int
) -> LogProbsProcessor | None:
    """Return what the settings of a search ask for, with ``process`` after it; None if that is nothing.

    Where ``process`` forces a token, that is what stands there.

    >>> requested_processor(SearchConfig(min_length=2), eos_id=2)
    Chain(processors=[MinLength(n_tokens=2, eos_id=2)])
    """
    processors: list[LogProbsProcessor] = []
    if isinstance(search, ProcessedSearchConfig):
        processors += [
            each.of(search, eos_id=eos_id) for each in REQUESTED if not search.changed.isdisjoint(each.fields)
        ]
    if isinstance(process, ForcedPrefix):
        return replace(process, rules=[*processors, *process.rules])
    if process is not None:
        processors.append(process)
    return Chain(processors) if processors else None
