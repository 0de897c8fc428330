"""Stores of images or audio with their text: features in the column ``features``, ids in the column ``text``.

A row of features is the columns of pixels of an image (bytes), or the frames of a recording (float16): raw enough that
the size of patches can change without a new preparation.

Shapes: R rows of the store, B rows of a batch, S source positions, Z columns or frames (a multiple of the stride), X
width of a feature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.data.batch_source import BatchOptions, StoreBatches
from transduce.data.collate import Batch, collate_pairs
from transduce.data.store import Store

__all__ = ["FEATURES", "TEXT", "MediaBatches", "masked", "padded_features"]

FEATURES, TEXT = "features", "text"  # the columns

CountPositions = Callable[[int], int]  # from columns or frames to source positions


def padded_features(rows: Sequence[NDArray[Any]], *, stride: int) -> Tensor:
    """Pad features (Z, X) with zeros to one length, a multiple of ``stride``: (B, Z, X) in their dtype.

    >>> padded_features([np.ones((3, 1), np.uint8), np.ones((1, 1), np.uint8)], stride=2).squeeze(2).tolist()
    [[1, 1, 1, 0], [1, 0, 0, 0]]
    """
    n_columns = -(-max(map(len, rows)) // stride) * stride
    padded = np.zeros((len(rows), n_columns, rows[0].shape[1]), rows[0].dtype)
    for place, row in zip(padded, rows, strict=True):
        place[: len(row)] = row
    return torch.from_numpy(padded)


def masked(features: NDArray[Any], n_masks: int, random: np.random.Generator) -> NDArray[Any]:
    """Return a copy of features (Z, X) with ``n_masks`` runs of columns, and as many of rows, set to 0.

    A run has at most a fifth of the columns or of the rows. 0 is paper, or the mean of a band.
    """
    features = features.copy()
    for _ in range(n_masks):
        for length, axis in zip(features.shape, (0, 1), strict=True):
            width = int(random.integers(0, length // 5 + 1))
            start = int(random.integers(0, length - width + 1))
            features[(slice(None),) * axis + (slice(start, start + width),)] = 0
    return features


class MediaBatches(StoreBatches[Batch]):
    """Batches of images or audio with their text. The source of a ``Batch`` is then features, (B, Z, X)."""

    def __init__(
        self,
        store: Store,
        *,
        stride: int,
        n_positions: CountPositions,
        n_masks: int = 0,
        **options: Unpack[BatchOptions],
    ) -> None:
        """``n_positions``: the source positions of so many columns or frames, of which ``stride`` give a position.

        ``n_masks``: masks of each source, in each direction; they follow from the seed, the epoch and the row.
        """
        self._stride, self._n_masks = stride, n_masks
        super().__init__(
            store,
            src_lengths=np.array([n_positions(int(n)) for n in store.columns[FEATURES].lengths_R], np.int32),
            tgt_lengths=store.columns[TEXT].lengths_R + np.int32(1),
            **options,
        )

    def _collate_rows(self, epoch: int, rows_B: NDArray[np.int64]) -> Batch:
        ids = [self.store.columns[TEXT].row(row) for row in rows_B]
        batch = collate_pairs(ids, ids, rows=tuple(rows_B.tolist()))  # for its target
        assert batch.lengths is not None
        lengths_B = self._src_lengths[rows_B].astype(np.int64)
        features = [self._features(epoch, int(row)) for row in rows_B]
        return replace(
            batch,
            src_BS=padded_features(features, stride=self._stride),
            n_src_tokens=int(lengths_B.sum()),
            lengths=(lengths_B, batch.lengths[1]),
        ).to(self._device)

    def _features(self, epoch: int, row: int) -> NDArray[Any]:
        features = self.store.columns[FEATURES].row(row)
        if not self._n_masks:
            return features
        return masked(features, self._n_masks, np.random.default_rng([self.seed, epoch, row]))
