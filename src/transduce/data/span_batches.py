"""Batches of segments with spans removed, see ``spans.py``.

Shapes: T tokens of a segment, I segments of an epoch, B rows of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from transduce.data.batch_source import BatchOptions
from transduce.data.collate import Batch, collate_pairs
from transduce.data.documents import SegmentBatches
from transduce.data.spans import corrupt, span_counts
from transduce.data.store import Store

__all__ = ["SpanBatches"]


class SpanBatches(SegmentBatches[Batch]):
    """Batches of pairs: a segment with spans removed, and the spans."""

    has_bos = False

    def __init__(
        self, store: Store, *, sentinels: Sequence[int], max_length: int, **options: Unpack[BatchOptions]
    ) -> None:
        super().__init__(store, max_length=max_length, **options)
        self._sentinels = sentinels

    def _lengths(self, epoch: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        n_tokens_I = self.segments(epoch).length_I.astype(np.int64)
        n_removed_I, n_spans_I = span_counts(n_tokens_I, max_spans=len(self._sentinels) - 1)
        src_I = n_tokens_I - n_removed_I + n_spans_I + 1  # and EOS
        tgt_I = n_removed_I + n_spans_I + 2  # with the last sentinel and EOS
        return src_I.astype(np.int32), tgt_I.astype(np.int32)

    def _collate_rows(self, epoch: int, rows_B: NDArray[np.int64]) -> Batch:
        segments, sources, targets = self.segments(epoch), [], []
        for item, ids_T in zip(rows_B.tolist(), self._ids_of_segments(epoch, rows_B), strict=True):
            source, target = corrupt(ids_T, self._sentinels, np.random.default_rng([self.seed, epoch, 4, item]))
            sources.append(source)
            targets.append(target)
        rows = tuple(segments.row_I[rows_B].tolist())
        return collate_pairs(sources, targets, rows=rows).to(self._device)
