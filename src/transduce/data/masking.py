"""Masking: the inputs and targets of masked language models. Devlin et al. (2019), section 3.1.

Of the tokens of a segment some are chosen; most of these become the mask token, a few a random token, a few stay. The
model predicts the chosen ones. Every epoch chooses anew, from the seed, the epoch and the number of the segment alone.

Shapes: T positions of a segment, M chosen positions, I segments of an epoch, B rows of a batch, N chosen positions of
all rows.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.data.batch_source import BatchOptions
from transduce.data.collate import pad_rows
from transduce.data.documents import SegmentBatches, TextBatch
from transduce.data.store import Store
from transduce.text import BOS_ID, SPECIAL_TOKENS

__all__ = ["P_CHOSEN", "MaskedBatches", "mask_tokens", "n_chosen"]

P_CHOSEN = 0.15  # of a segment's tokens
P_MASK, P_RANDOM = 0.8, 0.1  # of the chosen ones: the mask token, a random one; the rest stays


def n_chosen(n_tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of ``n_tokens`` tokens are chosen: 15 %, rounded, but at least one if there is a token.

    >>> n_chosen(np.array([0, 1, 10, 100])).tolist()
    [0, 1, 2, 15]
    """
    rounded: NDArray[np.int64] = np.floor(P_CHOSEN * n_tokens + 0.5).astype(np.int64)
    chosen: NDArray[np.int64] = np.maximum(rounded, np.minimum(n_tokens, 1))
    return chosen


def mask_tokens(
    ids_T: NDArray[np.int64], mask_id: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the inputs (T,) of a segment, and the chosen positions (M,) in order; BOS is never chosen.

    ``mask_id`` also ends the tokens of text: those that follow it are sentinels.

    >>> ids_T = np.array([BOS_ID, 10, 11, 12, 13, 14, 15])
    >>> inputs_T, chosen_M = mask_tokens(ids_T, 50, np.random.default_rng(3))
    >>> inputs_T.tolist(), chosen_M.tolist()
    ([1, 10, 11, 12, 13, 50, 15], [5])
    """
    tokens_T = np.flatnonzero(ids_T != BOS_ID)
    n = int(n_chosen(np.array(len(tokens_T))))
    chosen_M = np.sort(random.choice(tokens_T, size=n, replace=False))
    inputs_T, fate_M = ids_T.copy(), random.random(n)
    random_M = random.integers(len(SPECIAL_TOKENS), mask_id, size=n)
    kept_M = ids_T[chosen_M]
    inputs_T[chosen_M] = np.where(fate_M < P_MASK, mask_id, np.where(fate_M < P_MASK + P_RANDOM, random_M, kept_M))
    return inputs_T, chosen_M


class MaskedBatches(SegmentBatches[TextBatch]):
    """Batches for masked language models: the chosen positions have the token that stood there as their target."""

    shortest_first = 2  # a token besides BOS, so that each segment has a target

    def __init__(self, store: Store, *, mask_id: int, max_length: int, **options: Unpack[BatchOptions]) -> None:
        """``max_length``: at least 2."""
        super().__init__(store, max_length=max_length, **options)
        self._mask_id = mask_id

    def _lengths(self, epoch: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        segments = self.segments(epoch)
        n_tokens_I = segments.length_I.astype(np.int64) - (segments.start_I == 0)
        return segments.length_I, n_chosen(n_tokens_I).astype(np.int32)

    def _collate_rows(self, epoch: int, rows_B: NDArray[np.int64]) -> TextBatch:
        inputs, targets, positions, n_before = [], [], [], 0
        for item, ids_T in zip(rows_B.tolist(), self._ids_of_segments(epoch, rows_B), strict=True):
            random = np.random.default_rng([self.seed, epoch, 3, item])
            inputs_T, chosen_M = mask_tokens(ids_T, self._mask_id, random)
            inputs.append(inputs_T)
            targets.append(ids_T[chosen_M])
            positions.append(chosen_M + n_before)
            n_before += len(ids_T)
        targets_N, positions_N = (torch.from_numpy(np.concatenate(each)) for each in (targets, positions))
        return TextBatch(pad_rows(inputs), targets_N, positions_N).to(self._device)
