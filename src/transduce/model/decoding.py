"""The decoding state: KV cache, ancestry mask and positions. Section 3.1 ("auto-regressive").

Beams share prefixes and are reordered at every step. Instead of reordering the cache, each step appends the keys and
values of its tokens to new *slots* of the sentence, and the ancestry mask marks the slots in each beam's prefix. All
beams of a sentence are query positions of one attention over its slots. With restricted attention, slots that no later
token can see are dropped now and then, so that the cache does not grow with the length.

Shapes: B sentences, W beams of each, N = B W rows of the decoding batch, T new tokens of a row, Q = W T new query
positions of a sentence, C cache slots, S source positions, H heads, K d_k, U d_v, V vocabulary.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import torch
from torch import Tensor

from transduce.errors import ShapeError
from transduce.model.front_end import Positions

__all__ = ["DecodingState", "IncrementalDecoder", "LayerCache"]

INITIAL_CAPACITY = 128  # slots of a new cache; doubled when full
# With restricted attention: tokens of each row that are kept beyond the neighbourhood, so that they can be taken back.
MAX_REWOUND = 64

StateT = TypeVar("StateT")


class IncrementalDecoder(ABC, Generic[StateT]):
    """An autoregressive model with a decoding state: reads new tokens of each row, predicts the next ones."""

    @abstractmethod
    def extend(self, ids_NT: Tensor, state: StateT, n_new_N: Tensor | None = None) -> tuple[Tensor, StateT]:
        """Next-token logits (N, T, V) after each of T new tokens of a row, and the next decoding state.

        Only the first ``n_new_N[n]`` tokens of row n are read (None: all); the logits at the others are undefined. So
        rows may differ in length: given prefixes, forced decoding, drafts of speculative decoding.
        """

    def step(self, last_ids_N: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Next-token logits (N, V) after one new token of each row, and the next decoding state."""
        logits_N1V, state = self.extend(last_ids_N.unsqueeze(1), state)
        return logits_N1V.squeeze(1), state


@dataclass(slots=True, eq=False)
class LayerCache:
    """The KV cache of one layer: cross-attention's keys and values of the source, self-attention's of the prefix.

    The self-attention buffers are written in place, after the filled slots, and are enlarged when full. Sentences that
    leave make room at their end, which is not returned before the search ends.
    """

    cross_k_BHSK: Tensor | None
    cross_v_BHSU: Tensor | None
    self_k_BHCK: Tensor | None = None
    self_v_BHCU: Tensor | None = None

    def append(self, k_BHQK: Tensor, v_BHQU: Tensor, *, n_cached: int) -> tuple[Tensor, Tensor]:
        """Append keys and values after ``n_cached`` slots; return those of all filled slots."""
        end = n_cached + k_BHQK.shape[2]
        if self.self_k_BHCK is None or self.self_v_BHCU is None or end > self.self_k_BHCK.shape[2]:
            capacity = max(INITIAL_CAPACITY, 2 * end)
            self.self_k_BHCK = _reserve(self.self_k_BHCK, n_cached, capacity, like=k_BHQK)
            self.self_v_BHCU = _reserve(self.self_v_BHCU, n_cached, capacity, like=v_BHQU)
        self.self_k_BHCK[:, :, n_cached:end] = k_BHQK
        self.self_v_BHCU[:, :, n_cached:end] = v_BHQU
        return self.self_k_BHCK[:, :, :end], self.self_v_BHCU[:, :, :end]

    def keep(self, slots_C: Tensor) -> None:
        """Keep some slots of all sentences, in their order, and free the others."""
        for buffer_BHCK in (self.self_k_BHCK, self.self_v_BHCU):
            if buffer_BHCK is not None:
                buffer_BHCK[:, :, : len(slots_C)] = buffer_BHCK.index_select(2, slots_C)

    def select(self, sentences_B: Tensor, n_cached: int) -> LayerCache:
        """The cache of the selected sentences, in the same self-attention buffers if they are large enough."""
        cross = (_select(x, sentences_B) for x in (self.cross_k_BHSK, self.cross_v_BHSU))
        if self.self_k_BHCK is None or self.self_v_BHCU is None:
            return LayerCache(*cross)
        buffers = (_select_in_place(x, sentences_B, n_cached) for x in (self.self_k_BHCK, self.self_v_BHCU))
        return LayerCache(*cross, *buffers)


def _select(tensor: Tensor | None, sentences_B: Tensor) -> Tensor | None:
    return None if tensor is None else tensor.index_select(0, sentences_B)


def _select_in_place(buffer_BHCK: Tensor, sentences_B: Tensor, n_cached: int) -> Tensor:
    """The buffer with the selected sentences, moved to its front; a new one for more sentences than it holds."""
    filled_BHCK = buffer_BHCK[:, :, :n_cached].index_select(0, sentences_B)
    if len(filled_BHCK) > len(buffer_BHCK):
        return _reserve(filled_BHCK, n_cached, buffer_BHCK.shape[2], like=filled_BHCK)
    selected_BHCK = buffer_BHCK[: len(filled_BHCK)]
    selected_BHCK[:, :, :n_cached] = filled_BHCK
    return selected_BHCK


def _reserve(filled_BHCK: Tensor | None, n_cached: int, capacity: int, *, like: Tensor) -> Tensor:
    """A buffer with ``capacity`` slots; the first ``n_cached`` are copied from ``filled``."""
    n_sentences, n_heads, _, width = like.shape
    buffer_BHCK = like.new_empty(n_sentences, n_heads, capacity, width)
    if filled_BHCK is not None:
        buffer_BHCK[:, :, :n_cached] = filled_BHCK[:, :, :n_cached]
    return buffer_BHCK


@dataclass(frozen=True, slots=True)
class DecodingState:
    """The decoding state of an encoder-decoder or decoder-only stack; source and cache are held once per sentence.

    A state can be extended or selected from once: the next state shares its buffers.
    """

    layers: tuple[LayerCache, ...]
    allow_B1S: Tensor | None  # real source positions; None: all, or no source
    ancestry_BWC: Tensor  # ancestry mask, bool: the filled slots in each beam's prefix
    is_dense: bool  # every filled slot is in some beam's prefix, so one beam needs no mask
    positions: Positions  # of the rows
    neighbourhood: int | None = None  # r of restricted attention: a token sees itself and the r - 1 before it

    @property
    def n_at_once(self) -> int:
        """The number of tokens of a row that are read in one pass: few with restricted attention."""
        return sys.maxsize if self.neighbourhood is None else max(self.neighbourhood, INITIAL_CAPACITY)

    @property
    def n_beams(self) -> int:
        """W, the beams of each sentence."""
        return self.ancestry_BWC.shape[1]

    @property
    def n_cached(self) -> int:
        """C, the number of filled slots."""
        return self.ancestry_BWC.shape[2]

    def extend_masks(self, n_tokens: int, n_new_N: Tensor | None) -> tuple[Tensor | None, Tensor]:
        """The attention mask of T new tokens per row, (B, Q, C + Q) or None (all allowed), and the next ancestry mask.

        A new token attends to its beam's prefix, the new tokens before it, and itself. Tokens after the first
        ``n_new_N[n]`` of row n are left out of the ancestry mask.
        """
        n_sentences, n_beams, _ = self.ancestry_BWC.shape
        r = self.neighbourhood
        is_far = r is not None and self.n_cached + n_tokens > r  # some slots may be out of sight
        own_WW = torch.eye(n_beams, dtype=torch.bool, device=self.ancestry_BWC.device)
        if n_tokens == 1 and n_new_N is None:
            ancestry_BWC = torch.cat((self.ancestry_BWC, own_WW.expand(n_sentences, -1, -1)), dim=2)
            if r is not None and is_far:
                nearby_BWC = ancestry_BWC & (_from_end(ancestry_BWC) <= r)
                return nearby_BWC, ancestry_BWC
            return ancestry_BWC if n_beams > 1 or not self.is_dense else None, ancestry_BWC
        causal_TT = torch.ones(n_tokens, n_tokens, dtype=torch.bool, device=own_WW.device).tril()
        new_QQ = torch.kron(own_WW.int(), causal_TT.int()).bool()
        prefix_BQC = self.ancestry_BWC.repeat_interleave(n_tokens, dim=1)
        if r is not None and is_far:
            index_Q = torch.arange(n_tokens, device=own_WW.device).repeat(n_beams)
            from_end_BQC = _from_end(self.ancestry_BWC).repeat_interleave(n_tokens, dim=1)
            prefix_BQC = prefix_BQC & (from_end_BQC + index_Q.unsqueeze(1) < r)
            new_QQ = torch.kron(own_WW.int(), causal_TT.triu(1 - r).int()).bool()
        allow_BQC = torch.cat((prefix_BQC, new_QQ.expand(n_sentences, -1, -1)), dim=2)
        new_BWQ = own_WW.repeat_interleave(n_tokens, dim=1).expand(n_sentences, -1, -1)
        if n_new_N is not None:
            is_new_NT = torch.arange(n_tokens, device=n_new_N.device) < n_new_N.unsqueeze(1)
            new_BWQ = new_BWQ & is_new_NT.view(n_sentences, 1, -1)
        return allow_BQC, torch.cat((self.ancestry_BWC, new_BWQ), dim=2)

    def select(self, rows_BW: Tensor) -> DecodingState:
        """The state of the rows ``rows_BW.flatten()``; each row of the matrix holds the beams of one sentence.

        B and W may change: finished sentences are left out, and a sentence may get more or fewer beams.
        """
        ancestry_BWC = self.ancestry_BWC.flatten(0, 1)[rows_BW]
        positions = self.positions.select(rows_BW.flatten())
        is_dense = self.is_dense and self.n_beams == 1
        sentences_B = rows_BW[:, 0] // self.n_beams
        n_sentences = len(self.ancestry_BWC)
        selected = replace(self, ancestry_BWC=ancestry_BWC, is_dense=is_dense, positions=positions)
        if len(sentences_B) == n_sentences and torch.equal(sentences_B, torch.arange(n_sentences).to(rows_BW)):
            return selected
        layers = tuple(layer.select(sentences_B, self.n_cached) for layer in self.layers)
        return replace(selected, layers=layers, allow_B1S=_select(self.allow_B1S, sentences_B))

    def without_far_slots(self) -> DecodingState:
        """The state without the slots that no later token can see, if at least half of them are; else as it is.

        Those of the last ``MAX_REWOUND`` tokens beyond the neighbourhood are kept.
        """
        if self.neighbourhood is None:
            return self
        n_kept = self.neighbourhood + MAX_REWOUND
        if self.n_cached < 2 * self.n_beams * n_kept:
            return self
        is_near_BWC = self.ancestry_BWC & (_from_end(self.ancestry_BWC) <= n_kept)
        slots_C = is_near_BWC.flatten(0, 1).any(dim=0).nonzero().squeeze(1)
        if 2 * len(slots_C) > self.n_cached:
            return self
        for layer in self.layers:
            layer.keep(slots_C)
        return replace(self, ancestry_BWC=self.ancestry_BWC.index_select(2, slots_C))

    def rewind(self, n_N: Tensor) -> DecodingState:
        """The state before the last ``n`` tokens of each row, such as rejected drafts.

        Their slots are masked; of a single row, they are free again. Raises ShapeError if restricted attention has
        dropped what the tokens before them need.
        """
        if self.neighbourhood is not None and int(n_N.max()) > MAX_REWOUND:
            raise ShapeError(f"restricted attention can take back {MAX_REWOUND} tokens of a row, got {int(n_N.max())}")
        n_rewound = int(n_N[0]) if len(n_N) == 1 else 0
        if n_rewound and self.is_dense:  # the tokens of a dense row are in its last slots
            ancestry_BWC = self.ancestry_BWC[:, :, : self.n_cached - n_rewound]
            return replace(self, ancestry_BWC=ancestry_BWC, positions=self.positions.rewind(n_N))
        ancestry_BWC = self.ancestry_BWC & (_from_end(self.ancestry_BWC) > n_N.view(-1, self.n_beams, 1))
        return replace(self, ancestry_BWC=ancestry_BWC, is_dense=False, positions=self.positions.rewind(n_N))


def _from_end(ancestry_BWC: Tensor) -> Tensor:
    """For each slot of a row's prefix, its place from the end: 1 for the last one, then 2, ..."""
    return ancestry_BWC.flip(2).cumsum(2).flip(2)
