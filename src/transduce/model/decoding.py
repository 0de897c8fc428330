"""One token at a time: the decoder's keys and values kept from step to step. Section 3.1 ("auto-regressive").

Shapes: B sentences, W rows (beams) of each, N = B * W rows, H heads, S source positions, T steps so far,
K d_k, V d_v, D d_model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

__all__ = ["DecodingState", "LayerCache"]


@dataclass(frozen=True, slots=True)
class LayerCache:
    """What one decoder layer remembers."""

    self_k_NHTK: Tensor
    self_v_NHTV: Tensor
    cross_k_BHSK: Tensor
    cross_v_BHSV: Tensor

    def append(self, k_NH1K: Tensor, v_NH1V: Tensor) -> LayerCache:
        """With the keys and values of one more step."""
        return replace(
            self,
            self_k_NHTK=torch.cat((self.self_k_NHTK, k_NH1K), dim=2),
            self_v_NHTV=torch.cat((self.self_v_NHTV, v_NH1V), dim=2),
        )


@dataclass(frozen=True, slots=True)
class DecodingState:
    """All that the next step needs. What belongs to a sentence is held once, however many rows ask it."""

    layers: tuple[LayerCache, ...]
    allow_B1S: Tensor | None  # real source positions; None: all
    n_steps: int
    n_beams: int  # W

    def select(self, rows_BW: Tensor) -> DecodingState:
        """The state whose rows are ``rows_BW.flatten()`` of this one; each row of the matrix is one sentence's.

        Sentences may leave (a smaller B), and their number of rows may change.
        """
        rows_N = rows_BW.flatten()
        sentences_B = rows_BW[:, 0] // self.n_beams
        n_sentences = len(self.layers[0].cross_k_BHSK)
        is_same = len(sentences_B) == n_sentences and bool((sentences_B == torch.arange(n_sentences).to(rows_BW)).all())
        layers = tuple(
            LayerCache(
                layer.self_k_NHTK.index_select(0, rows_N),
                layer.self_v_NHTV.index_select(0, rows_N),
                layer.cross_k_BHSK if is_same else layer.cross_k_BHSK.index_select(0, sentences_B),
                layer.cross_v_BHSV if is_same else layer.cross_v_BHSV.index_select(0, sentences_B),
            )
            for layer in self.layers
        )
        allow_B1S = self.allow_B1S if self.allow_B1S is None or is_same else self.allow_B1S.index_select(0, sentences_B)
        return DecodingState(layers, allow_B1S, self.n_steps, rows_BW.shape[1])
