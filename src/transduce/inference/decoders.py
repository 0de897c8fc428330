"""What a search steps through, around a model: a function before each step, known padding, a prompt.

Shapes: B sources or prompts of a batch, N rows of a decoding batch, T new tokens of a row, V vocabulary, Z columns or
frames, X width of a feature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol

import torch
from torch import Tensor

from transduce.data import pad_rows
from transduce.model import DecodingState, Transformer, TransformerLM
from transduce.model.padding import PaddingInfo
from transduce.search import RewindableT

__all__ = ["AttendedDecoder", "Decoder", "PaddedSource", "PromptDecoder"]


class Decoder(Protocol[RewindableT]):
    """Incremental decoder of a model or an ensemble."""

    def start(self, src_BS: Tensor, /) -> RewindableT:
        """Encode the sources and return the initial state, one row per sentence."""

    def step(self, last_ids_N: Tensor, state: RewindableT, /) -> tuple[Tensor, RewindableT]:
        """Append ``last_ids`` and return the logits of the next token, (N, V), and the new state."""

    def extend(
        self, ids_NT: Tensor, state: RewindableT, n_new_N: Tensor | None = None, /
    ) -> tuple[Tensor, RewindableT]:
        """Append several tokens of each row and return the logits after each, (N, T, V), and the new state."""


class AttendedDecoder(Generic[RewindableT]):
    """A decoder that calls a function before each step."""

    def __init__(self, decoder: Decoder[RewindableT], on_step: Callable[[], object]) -> None:
        self._decoder, self._on_step, self.start = decoder, on_step, decoder.start

    def step(self, last_ids_N: Tensor, state: RewindableT, /) -> tuple[Tensor, RewindableT]:
        """As the decoder does."""
        self._on_step()
        return self._decoder.step(last_ids_N, state)

    def extend(
        self, ids_NT: Tensor, state: RewindableT, n_new_N: Tensor | None = None, /
    ) -> tuple[Tensor, RewindableT]:
        """As the decoder does."""
        self._on_step()
        return self._decoder.extend(ids_NT, state, n_new_N)


class PaddedSource:
    """A decoder whose source has a known padding, which features, unlike ids, do not show."""

    def __init__(self, model: Transformer, padding: PaddingInfo) -> None:
        self._model, self._padding = model, padding
        self.step, self.extend = model.step, model.extend

    def start(self, source_BZX: Tensor, /) -> DecodingState:
        """Encode the sources and return the initial state."""
        return self._model.start(source_BZX, padding=self._padding)


class PromptDecoder:
    """A language model that begins with prompts."""

    def __init__(self, model: TransformerLM, barred_first_NV: Tensor | None) -> None:
        """``barred_first_NV``: tokens that may not follow the prompts."""
        self._model, self._barred_first_NV = model, barred_first_NV
        self._device = model.output.weight.device

    def read(self, rows: Sequence[Sequence[int]], /) -> tuple[Tensor, DecodingState]:
        """Return the logits after each row, (N, V), and the decoding state."""
        n_new_N = torch.tensor([len(row) for row in rows], device=self._device)
        is_even = len({len(row) for row in rows}) == 1
        logits_NTV, state = self._model.extend(
            pad_rows(rows).to(self._device), self._model.start(len(rows)), None if is_even else n_new_N
        )
        return self._allowed(logits_NTV[torch.arange(len(rows), device=self._device), n_new_N - 1]), state

    def start(self, prompts_BT: Tensor, /) -> DecodingState:
        """Read all of prompts of one length but their last tokens."""
        state = self._model.start(len(prompts_BT))
        return self._model.extend(prompts_BT[:, :-1], state)[1] if prompts_BT.shape[1] > 1 else state

    def step(self, last_ids_N: Tensor, state: DecodingState, /) -> tuple[Tensor, DecodingState]:
        """As the model does."""
        logits_NV, state = self._model.step(last_ids_N, state)
        return self._allowed(logits_NV), state

    def _allowed(self, logits_NV: Tensor) -> Tensor:
        """Return logits, the first ones without the barred tokens."""
        barred_NV, self._barred_first_NV = self._barred_first_NV, None
        return logits_NV if barred_NV is None else logits_NV.masked_fill(barred_NV, -torch.inf)

    def extend(
        self, ids_NT: Tensor, state: DecodingState, n_new_N: Tensor | None = None, /
    ) -> tuple[Tensor, DecodingState]:
        """As the model does."""
        return self._model.extend(ids_NT, state, n_new_N)
