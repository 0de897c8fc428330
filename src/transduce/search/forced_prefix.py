"""Forced prefixes: the search completes given beginnings of the outputs.

Shapes: N rows of the decoding batch, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.search.processor import LogProbsProcessor, Prefixes

__all__ = ["ForcedPrefix"]

MIN_LOG_PROB = -1e4  # a forced token stays possible, whatever the model says


@dataclass(frozen=True, slots=True, eq=False)
class ForcedPrefix:
    """A processor that forces the first tokens of each output.

    The log-probabilities of forced tokens are the model's, so scores are comparable across prefixes. ``rules`` do not
    change them.

    >>> force = ForcedPrefix([(2,), ()], is_barred_V=torch.tensor([False, False, True]), is_complete=[True, False])
    >>> start, later = torch.tensor([[1], [1]]), torch.tensor([[1, 2], [1, 2]])
    >>> alive = torch.tensor([True, True])
    >>> force(torch.tensor([[0.5, 0.2, 0.3]] * 2).log(), Prefixes(torch.tensor([0, 1]), start, alive)).exp()
    tensor([[0.0000, 0.0000, 0.3000],
            [0.5000, 0.2000, 0.3000]])
    >>> force(torch.tensor([[0.5, 0.2, 0.3]] * 2).log(), Prefixes(torch.tensor([0, 1]), later, alive)).exp()
    tensor([[0.5000, 0.2000, 0.0000],
            [0.5000, 0.2000, 0.3000]])
    """

    ids: Sequence[Sequence[int]]  # of each sentence, without BOS
    is_barred_V: Tensor  # bool: tokens that may not follow a complete prefix, since they continue a word
    is_complete: Sequence[bool]  # whether the prefix of each sentence ends with a complete word
    rules: Sequence[LogProbsProcessor] = ()  # are for the tokens that are not forced

    def __call__(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """Apply the rules, then set the log-probabilities of other tokens than the forced ones to -inf, in place."""
        position, device = prefixes.ids_NT.shape[1] - 1, log_probs_NV.device
        sentences = prefixes.sentences_N.tolist()
        forced = [self.ids[sentence][position] if position < len(self.ids[sentence]) else -1 for sentence in sentences]
        rows_N = torch.tensor([row for row, id in enumerate(forced) if id >= 0], dtype=torch.int64, device=device)
        ids_N = torch.tensor([id for id in forced if id >= 0], dtype=torch.int64, device=device)
        kept_N = log_probs_NV[rows_N, ids_N].clamp(min=MIN_LOG_PROB)  # before a rule changes them
        for process in self.rules:
            log_probs_NV = process(log_probs_NV, prefixes)
        if len(rows_N):
            log_probs_NV[rows_N] = -torch.inf
            log_probs_NV[rows_N, ids_N] = kept_N
        ends = [self.is_complete[sentence] and position == len(self.ids[sentence]) for sentence in sentences]
        if any(ends):
            ends_N1 = torch.tensor(ends, device=device).unsqueeze(1)
            log_probs_NV.masked_fill_(ends_N1 & self.is_barred_V.to(device), -torch.inf)
        return log_probs_NV
