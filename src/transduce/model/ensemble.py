"""Several models that write one translation together."""

# N rows, V vocabulary, B sentences, S source positions, W beams of a sentence

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transduce.model.decoding import IncrementalDecoder
from transduce.model.encoder_decoder import EncoderDecoder

__all__ = ["Ensemble", "EnsembleState"]


@dataclass(frozen=True, slots=True)
class EnsembleState:
    """What each model remembers."""

    states: tuple[Any, ...]

    def select(self, rows_BW: Tensor) -> EnsembleState:
        """The chosen rows of each."""
        return EnsembleState(tuple(state.select(rows_BW) for state in self.states))

    def rewind(self, n_N: Tensor) -> EnsembleState:
        """Each, before the last ``n`` tokens of each row."""
        return EnsembleState(tuple(state.rewind(n_N) for state in self.states))


class Ensemble(IncrementalDecoder[EnsembleState]):
    """A step is as likely as the models find it on average: the mean of their probabilities."""

    def __init__(self, models: Sequence[EncoderDecoder]) -> None:
        """Models over the same vocabularies; at least one."""
        self.models = tuple(models)

    def start(self, src_BS: Tensor) -> EnsembleState:
        """Encode, with each."""
        return EnsembleState(tuple(model.start(src_BS) for model in self.models))

    def extend(
        self, ids_NT: Tensor, state: EnsembleState, n_new_N: Tensor | None = None
    ) -> tuple[Tensor, EnsembleState]:
        """Log-probabilities (N, T, V) of what follows each new token, and the state that has seen them."""
        each = [model.extend(ids_NT, own, n_new_N) for model, own in zip(self.models, state.states, strict=True)]
        # In fp32 at least, as search has them.
        log_p_MNTV = torch.stack([logits.to(torch.promote_types(logits.dtype, torch.float32)) for logits, _ in each])
        mean_NTV = log_p_MNTV.log_softmax(dim=-1).logsumexp(dim=0) - math.log(len(each))
        return mean_NTV, EnsembleState(tuple(after for _, after in each))
