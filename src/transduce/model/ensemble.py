"""Ensembles: decoding with the mean of several models' probabilities.

Shapes: B sentences, W beams of each, N rows of the decoding batch, S source positions, T new tokens, V vocabulary,
X models.
"""

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
    """The decoding states of all models."""

    states: tuple[Any, ...]

    def select(self, rows_BW: Tensor) -> EnsembleState:
        """The states of the selected rows."""
        return EnsembleState(tuple(state.select(rows_BW) for state in self.states))

    def rewind(self, n_N: Tensor) -> EnsembleState:
        """The states without the last ``n_N`` tokens of each row."""
        return EnsembleState(tuple(state.rewind(n_N) for state in self.states))


class Ensemble(IncrementalDecoder[EnsembleState]):
    """An ensemble of encoder-decoders: the next-token distribution is the mean of theirs."""

    def __init__(self, models: Sequence[EncoderDecoder]) -> None:
        """``models``: at least one; all share the source and the target vocabulary."""
        self.models = tuple(models)

    def start(self, src_BS: Tensor) -> EnsembleState:
        """Encode the source with every model."""
        return EnsembleState(tuple(model.start(src_BS) for model in self.models))

    def extend(
        self, ids_NT: Tensor, state: EnsembleState, n_new_N: Tensor | None = None
    ) -> tuple[Tensor, EnsembleState]:
        """Log-probabilities (N, T, V) of the next token after each new token, and the next decoding state."""
        pairs = zip(self.models, state.states, strict=True)
        outputs = [model.extend(ids_NT, model_state, n_new_N) for model, model_state in pairs]
        # At least fp32, as in search.
        logits_XNTV = torch.stack(
            [logits.to(torch.promote_types(logits.dtype, torch.float32)) for logits, _ in outputs]
        )
        log_probs_NTV = logits_XNTV.log_softmax(dim=-1).logsumexp(dim=0) - math.log(len(outputs))
        return log_probs_NTV, EnsembleState(tuple(next_state for _, next_state in outputs))
