"""Several models that write one translation together."""

# N rows, V vocabulary, B sentences, S source positions, W beams of a sentence

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transduce.model.encoder_decoder import EncoderDecoder

__all__ = ["Ensemble", "EnsembleState"]


@dataclass(frozen=True, slots=True)
class EnsembleState:
    """What each model remembers."""

    states: tuple[Any, ...]

    def select(self, rows_BW: Tensor) -> EnsembleState:
        """The chosen rows of each."""
        return EnsembleState(tuple(state.select(rows_BW) for state in self.states))


class Ensemble:
    """A step is as likely as the models find it on average: the mean of their probabilities."""

    def __init__(self, models: Sequence[EncoderDecoder]) -> None:
        """Models over the same vocabularies; at least one."""
        self.models = tuple(models)

    def start(self, src_BS: Tensor) -> EnsembleState:
        """Encode, with each."""
        return EnsembleState(tuple(model.start(src_BS) for model in self.models))

    def step(self, last_ids_N: Tensor, state: EnsembleState) -> tuple[Tensor, EnsembleState]:
        """Log-probabilities (N, V) of the token after ``last_ids``, and the state that has seen it."""
        steps = [model.step(last_ids_N, own) for model, own in zip(self.models, state.states, strict=True)]
        # In fp32 at least, as search has them.
        log_p_MNV = torch.stack([logits.to(torch.promote_types(logits.dtype, torch.float32)) for logits, _ in steps])
        mean_NV = log_p_MNV.log_softmax(dim=-1).logsumexp(dim=0) - math.log(len(steps))
        return mean_NV, EnsembleState(tuple(after for _, after in steps))
