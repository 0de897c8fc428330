"""Decoding with a model's further heads: after each pass they predict the tokens after the next one.

The model's next pass verifies them (``search/speculative.py``). Stern, Shazeer and Uszkoreit (2018).

Shapes: N rows of the decoding batch, S source positions, T new tokens of a row, P further heads, D d_model,
V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.model.decoding import DecodingState, IncrementalDecoder
from transduce.model.transformer import Transformer

__all__ = ["BlockDecoder", "BlockState"]


@dataclass(frozen=True, slots=True)
class BlockState:
    """The decoding state of the model, and the decoder's states at the tokens that were read last."""

    state: DecodingState
    states_NTD: Tensor | None = None  # None before the first pass
    last_N: Tensor | None = None  # the last token of each row among them

    def select(self, rows_BW: Tensor) -> BlockState:
        """The state of the selected rows."""
        state, rows_N = self.state.select(rows_BW), rows_BW.flatten()
        if self.states_NTD is None or self.last_N is None:
            return BlockState(state)
        return BlockState(state, self.states_NTD[rows_N], self.last_N[rows_N])

    def rewind(self, n_N: Tensor) -> BlockState:
        """The state before the last ``n`` tokens of each row."""
        last_N = None if self.last_N is None else self.last_N - n_N
        return BlockState(self.state.rewind(n_N), self.states_NTD, last_N)


class BlockDecoder(IncrementalDecoder[BlockState]):
    """A Transformer with further heads, as a decoder whose states these heads can read."""

    def __init__(self, model: Transformer, *, block_size: int | None = None) -> None:
        """``block_size``: tokens that are proposed at once; None: all that the model has heads for."""
        assert model.lookahead_heads is not None
        n_heads = len(model.lookahead_heads)
        self.model, self._n_heads = model, n_heads if block_size is None else min(n_heads, block_size - 1)

    def start(self, src_BS: Tensor) -> BlockState:
        """Encode the source and return the initial decoding state: one row per sentence."""
        return BlockState(self.model.start(src_BS))

    def extend(self, ids_NT: Tensor, state: BlockState, n_new_N: Tensor | None = None) -> tuple[Tensor, BlockState]:
        """Next-token logits (N, T, V) after each of T new tokens of a row, and the next decoding state."""
        states_NTD, next_state = self.model.extend_states(ids_NT, state.state, n_new_N)
        last_N = torch.full((len(ids_NT),), ids_NT.shape[1] - 1, device=ids_NT.device)
        return self.model.logits(states_NTD), BlockState(
            next_state, states_NTD, last_N if n_new_N is None else n_new_N - 1
        )

    def ahead(self, state: BlockState) -> Tensor | None:
        """Logits (N, P, V) of the tokens after the next one of each row; None before the first pass."""
        if state.states_NTD is None or state.last_N is None or self._n_heads == 0:
            return None
        rows_N = torch.arange(len(state.last_N), device=state.last_N.device)
        # A row that took everything back is finished: what it proposes is not used.
        states_ND = state.states_NTD[rows_N, state.last_N.clamp(min=0)]
        assert self.model.lookahead_heads is not None
        heads = [self.model.lookahead_heads.head(index, states_ND) for index in range(self._n_heads)]
        return self.model.logits(torch.stack(heads, dim=1))
