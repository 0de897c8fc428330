"""One token at a time: the decoder's keys and values kept from step to step. Section 3.1 ("auto-regressive").

The beams of a sentence often share their past, and change places at every step. So nothing is moved for them: each step
writes the keys and values of its tokens into new *slots* of the sentence, and a table says which slots are the past of
which beam. The beams of a sentence are query positions of one attention over all its slots.

Shapes: B sentences, W rows (beams) of each, H heads, S source positions, C slots, K d_k, V d_v.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

__all__ = ["DecodingState", "LayerCache"]

FEWEST_SLOTS = 128  # room that a cache begins with; it doubles when it is full


@dataclass(frozen=True, slots=True)
class LayerCache:
    """What one decoder layer remembers. The buffers of slots are written in place, past those that are filled."""

    self_k_BHCK: Tensor
    self_v_BHCV: Tensor
    cross_k_BHSK: Tensor
    cross_v_BHSV: Tensor

    def with_slots(self, k_BHWK: Tensor, v_BHWV: Tensor, *, n_filled: int) -> tuple[Tensor, Tensor]:
        """Write keys and values into the next slots; returns those of all slots that are filled now."""
        end = n_filled + k_BHWK.shape[2]
        self.self_k_BHCK[:, :, n_filled:end] = k_BHWK
        self.self_v_BHCV[:, :, n_filled:end] = v_BHWV
        return self.self_k_BHCK[:, :, :end], self.self_v_BHCV[:, :, :end]

    def with_room(self, n_filled: int, n_slots: int) -> LayerCache:
        """With buffers of ``n_slots``."""
        return replace(
            self,
            self_k_BHCK=_with_room(self.self_k_BHCK, n_filled, n_slots),
            self_v_BHCV=_with_room(self.self_v_BHCV, n_filled, n_slots),
        )

    def of_sentences(self, sentences_B: Tensor, n_filled: int) -> LayerCache:
        """What belongs to some of the sentences."""
        n_slots = self.self_k_BHCK.shape[2]
        return LayerCache(
            _with_room(self.self_k_BHCK[:, :, :n_filled].index_select(0, sentences_B), n_filled, n_slots),
            _with_room(self.self_v_BHCV[:, :, :n_filled].index_select(0, sentences_B), n_filled, n_slots),
            self.cross_k_BHSK.index_select(0, sentences_B),
            self.cross_v_BHSV.index_select(0, sentences_B),
        )


def _with_room(filled_BHCK: Tensor, n_filled: int, n_slots: int) -> Tensor:
    n_sentences, n_heads, _, width = filled_BHCK.shape
    buffer_BHCK = filled_BHCK.new_empty(n_sentences, n_heads, n_slots, width)
    buffer_BHCK[:, :, :n_filled] = filled_BHCK[:, :, :n_filled]
    return buffer_BHCK


@dataclass(frozen=True, slots=True)
class DecodingState:
    """All that the next step needs. What belongs to a sentence is held once, however many rows ask it.

    A state is good for one step: what follows it shares its buffers.
    """

    layers: tuple[LayerCache, ...]
    allow_B1S: Tensor | None  # real source positions; None: all
    is_past_BWC: Tensor  # bool: which filled slots are the past of a row
    n_steps: int
    n_words_N: Tensor | None = None  # that each row has written, where positions count them

    @property
    def n_beams(self) -> int:
        """W."""
        return self.is_past_BWC.shape[1]

    @property
    def n_filled(self) -> int:
        """How many slots hold something."""
        return self.is_past_BWC.shape[2]

    def with_room(self) -> DecodingState:
        """The same state with free slots for one more step."""
        needed = self.n_filled + self.n_beams
        if needed <= self.layers[0].self_k_BHCK.shape[2]:
            return self
        n_slots = max(FEWEST_SLOTS, 2 * needed)
        return replace(self, layers=tuple(layer.with_room(self.n_filled, n_slots) for layer in self.layers))

    def select(self, rows_BW: Tensor) -> DecodingState:
        """The state whose rows are ``rows_BW.flatten()`` of this one; each row of the matrix is one sentence's.

        Sentences may leave (a smaller B), and their number of rows may change.
        """
        is_past_BWC = self.is_past_BWC.flatten(0, 1)[rows_BW]
        n_words_N = None if self.n_words_N is None else self.n_words_N[rows_BW.flatten()]
        sentences_B = rows_BW[:, 0] // self.n_beams
        n_sentences = len(self.is_past_BWC)
        if len(sentences_B) == n_sentences and torch.equal(sentences_B, torch.arange(n_sentences).to(rows_BW)):
            return replace(self, is_past_BWC=is_past_BWC, n_words_N=n_words_N)
        layers = tuple(layer.of_sentences(sentences_B, self.n_filled) for layer in self.layers)
        allow_B1S = None if self.allow_B1S is None else self.allow_B1S.index_select(0, sentences_B)
        return DecodingState(layers, allow_B1S, is_past_BWC, self.n_steps, n_words_N)
