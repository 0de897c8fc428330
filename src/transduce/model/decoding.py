"""The decoder's memory from step to step: keys and values in a cache. Section 3.1 ("auto-regressive").

The beams of a sentence often share their past, and change places at every step. So nothing is moved for them: each step
writes the keys and values of its tokens into new *slots* of the sentence, and a table, the ancestry mask, says which
slots are the past of which beam. The beams of a sentence are query positions of one attention over all its slots.

Shapes: B sentences, W rows (beams) of each, N = B W, T new tokens of a row, H heads, S source positions, C slots,
Q = W T new slots, K d_k, V d_v, or V vocabulary in scores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import torch
from torch import Tensor

from transduce.model.front_end import Positions

__all__ = ["DecodingState", "IncrementalDecoder", "LayerCache"]

INITIAL_CAPACITY = 128  # capacity that a cache begins with; it doubles when it is full

StateT = TypeVar("StateT")


class IncrementalDecoder(ABC, Generic[StateT]):
    """A model that writes: reads some more tokens of each row, or one at a time, and says what may follow."""

    @abstractmethod
    def extend(self, ids_NT: Tensor, state: StateT, n_new_N: Tensor | None = None) -> tuple[Tensor, StateT]:
        """Scores (N, T, V) of what follows each of T more tokens of a row, and the state that has seen them.

        Of row n only the first ``n_new_N[n]`` tokens are read (None: all), as rows of a batch differ: prefixes, forced
        scoring, drafts to verify. Scores at the others mean nothing.
        """

    def step(self, last_ids_N: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Scores (N, V) of the token after ``last_ids``, and the state that has seen it."""
        logits_N1V, state = self.extend(last_ids_N.unsqueeze(1), state)
        return logits_N1V.squeeze(1), state


@dataclass(slots=True, eq=False)
class LayerCache:
    """The keys and values that one layer attends to: those of a source, and those of the tokens so far.

    The buffers of the latter are written in place, past the slots that are filled, and grow when they are full.
    """

    cross_k_BHSK: Tensor | None
    cross_v_BHSV: Tensor | None
    self_k_BHCK: Tensor | None = None
    self_v_BHCV: Tensor | None = None

    def append(self, k_BHQK: Tensor, v_BHQV: Tensor, *, n_cached: int) -> tuple[Tensor, Tensor]:
        """Write keys and values into the next slots; returns those of all slots that are filled now."""
        end = n_cached + k_BHQK.shape[2]
        if self.self_k_BHCK is None or self.self_v_BHCV is None or end > self.self_k_BHCK.shape[2]:
            capacity = max(INITIAL_CAPACITY, 2 * end)
            self.self_k_BHCK = _reserve(self.self_k_BHCK, n_cached, capacity, like=k_BHQK)
            self.self_v_BHCV = _reserve(self.self_v_BHCV, n_cached, capacity, like=v_BHQV)
        self.self_k_BHCK[:, :, n_cached:end] = k_BHQK
        self.self_v_BHCV[:, :, n_cached:end] = v_BHQV
        return self.self_k_BHCK[:, :, :end], self.self_v_BHCV[:, :, :end]

    def of_sentences(self, sentences_B: Tensor, n_cached: int) -> LayerCache:
        """What belongs to some of the sentences."""
        cross = (_chosen(each, sentences_B) for each in (self.cross_k_BHSK, self.cross_v_BHSV))
        if self.self_k_BHCK is None or self.self_v_BHCV is None:
            return LayerCache(*cross)
        capacity = self.self_k_BHCK.shape[2]
        kept = (each[:, :, :n_cached].index_select(0, sentences_B) for each in (self.self_k_BHCK, self.self_v_BHCV))
        return LayerCache(*cross, *(_reserve(each, n_cached, capacity, like=each) for each in kept))


def _chosen(tensor: Tensor | None, sentences_B: Tensor) -> Tensor | None:
    return None if tensor is None else tensor.index_select(0, sentences_B)


def _reserve(filled_BHCK: Tensor | None, n_cached: int, capacity: int, *, like: Tensor) -> Tensor:
    n_sentences, n_heads, _, width = like.shape
    buffer_BHCK = like.new_empty(n_sentences, n_heads, capacity, width)
    if filled_BHCK is not None:
        buffer_BHCK[:, :, :n_cached] = filled_BHCK[:, :, :n_cached]
    return buffer_BHCK


@dataclass(frozen=True, slots=True)
class DecodingState:
    """All that the next step needs. What belongs to a sentence is held once, however many rows ask it.

    A state is good for one step: what follows it shares its buffers.
    """

    layers: tuple[LayerCache, ...]
    allow_B1S: Tensor | None  # real source positions; None: all, or no source
    ancestry_BWC: Tensor  # the ancestry mask, bool: which filled slots are the past of a row
    is_dense: bool  # every slot of a sentence is the past of some row: with one row, of that row
    positions: Positions  # of the rows

    @property
    def n_beams(self) -> int:
        """W."""
        return self.ancestry_BWC.shape[1]

    @property
    def n_cached(self) -> int:
        """How many slots hold something."""
        return self.ancestry_BWC.shape[2]

    def seen_by_new(self, n_tokens: int, n_new_N: Tensor | None) -> tuple[Tensor | None, Tensor]:
        """What T new tokens of each row attend to, (B, Q, C + Q) or None for all, and the ancestry mask with them.

        A token sees the past of its row, the new tokens before it, and itself. Those past ``n_new_N`` nobody will see.
        """
        n_sentences, n_beams, _ = self.ancestry_BWC.shape
        itself_WW = torch.eye(n_beams, dtype=torch.bool, device=self.ancestry_BWC.device)
        if n_tokens == 1 and n_new_N is None:
            ancestry_BWC = torch.cat((self.ancestry_BWC, itself_WW.expand(n_sentences, -1, -1)), dim=2)
            return ancestry_BWC if n_beams > 1 or not self.is_dense else None, ancestry_BWC
        before_TT = torch.ones(n_tokens, n_tokens, dtype=torch.bool, device=itself_WW.device).tril()
        new_QQ = torch.kron(itself_WW.int(), before_TT.int()).bool()
        past_BQC = self.ancestry_BWC.repeat_interleave(n_tokens, dim=1)
        allow_BQC = torch.cat((past_BQC, new_QQ.expand(n_sentences, -1, -1)), dim=2)
        new_BWQ = itself_WW.repeat_interleave(n_tokens, dim=1).expand(n_sentences, -1, -1)
        if n_new_N is not None:
            is_new_NT = torch.arange(n_tokens, device=n_new_N.device) < n_new_N.unsqueeze(1)
            new_BWQ = new_BWQ & is_new_NT.view(n_sentences, 1, -1)
        return allow_BQC, torch.cat((self.ancestry_BWC, new_BWQ), dim=2)

    def select(self, rows_BW: Tensor) -> DecodingState:
        """The state whose rows are ``rows_BW.flatten()`` of this one; each row of the matrix is one sentence's.

        Sentences may leave (a smaller B), and their number of rows may change.
        """
        ancestry_BWC = self.ancestry_BWC.flatten(0, 1)[rows_BW]
        positions = self.positions.select(rows_BW.flatten())
        is_dense = self.is_dense and self.n_beams == 1
        sentences_B = rows_BW[:, 0] // self.n_beams
        n_sentences = len(self.ancestry_BWC)
        if len(sentences_B) == n_sentences and torch.equal(sentences_B, torch.arange(n_sentences).to(rows_BW)):
            return DecodingState(self.layers, self.allow_B1S, ancestry_BWC, is_dense, positions)
        layers = tuple(layer.of_sentences(sentences_B, self.n_cached) for layer in self.layers)
        allow_B1S = _chosen(self.allow_B1S, sentences_B)
        return DecodingState(layers, allow_B1S, ancestry_BWC, is_dense, positions)

    def rewind(self, n_N: Tensor) -> DecodingState:
        """The state before the last ``n`` tokens of each row, as where drafts are rejected. Their slots stay unseen."""
        n_after_BWC = self.ancestry_BWC.flip(2).cumsum(2).flip(2)  # of a row's slots: from here to the end
        ancestry_BWC = self.ancestry_BWC & (n_after_BWC > n_N.view(-1, self.n_beams, 1))
        return replace(self, ancestry_BWC=ancestry_BWC, is_dense=False, positions=self.positions.rewind(n_N))
