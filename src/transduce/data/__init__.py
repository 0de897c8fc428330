"""Token stores on disk and the batches made of them: columns, batch planning under a token budget, collation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.data.batch_source import PairBatches, StoreBatches
    from transduce.data.batching import BatchStatistics, batch_statistics, plan_batches, plan_by_length, require_fit
    from transduce.data.collate import Batch, collate, pad_rows
    from transduce.data.columns import Column, ColumnKind, Ids, Ragged, Vectors
    from transduce.data.pairs import PairStore, excess_of_targets, open_pairs, write_pairs
    from transduce.data.sampling import epoch_rows, reversed_rows
    from transduce.data.store import LeftOut, Store, StoreSummary, open_store, read_summary, write_store
    from transduce.text.pair_encoding import PairSampling

__all__ = [
    "Batch", "BatchStatistics", "Column", "ColumnKind", "Ids", "LeftOut", "PairBatches", "PairSampling", "PairStore",
    "Ragged", "Store", "StoreBatches", "StoreSummary", "Vectors", "batch_statistics", "collate", "epoch_rows",
    "excess_of_targets", "open_pairs", "open_store", "pad_rows", "plan_batches", "plan_by_length", "read_summary",
    "require_fit", "reversed_rows", "write_pairs", "write_store",
]  # fmt: skip

imported_on_use(__name__)
