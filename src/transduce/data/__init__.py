"""Ids on disk to batches: the token store, batches under a token budget, collation."""

from transduce.data.batching import BatchStatistics, batch_statistics, plan_batches, plan_by_length, require_fit
from transduce.data.collate import Batch, collate, pad_rows
from transduce.data.sampling import epoch_rows, turned_rows
from transduce.data.store import PairDropout, StoreSummary, TokenStore, write_store

__all__ = [
    "Batch",
    "BatchStatistics",
    "PairDropout",
    "StoreSummary",
    "TokenStore",
    "batch_statistics",
    "collate",
    "epoch_rows",
    "pad_rows",
    "plan_batches",
    "plan_by_length",
    "require_fit",
    "turned_rows",
    "write_store",
]
