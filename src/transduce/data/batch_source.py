"""Batches of a store, addressed by (epoch, index), so that a run can resume in the middle of an epoch.

Shapes: R rows of the store, I rows that an epoch reads, B rows of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, NotRequired, TypedDict, TypeVar, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.data.batching import BatchStatistics, batch_statistics, plan_batches, require_fit
from transduce.data.collate import Batch, collate
from transduce.data.pairs import PairStore
from transduce.data.sampling import epoch_rows, n_reads, reversed_rows
from transduce.data.store import Store
from transduce.errors import ConfigError, DataError

__all__ = ["BatchOptions", "PairBatches", "StoreBatches"]

BatchT = TypeVar("BatchT")
CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Plan of an epoch: the rows of each batch, and the lengths of all rows of the store."""

    batches: list[NDArray[np.int64]]
    src_lengths_R: NDArray[np.int32]
    tgt_lengths_R: NDArray[np.int32]


class BatchOptions(TypedDict):
    """What all batches of a store need."""

    max_tokens: int
    seed: int
    device: NotRequired[torch.device]  # that batches are copied to; default: the CPU
    weights: NotRequired[Mapping[str, float] | None]  # how often an epoch reads the rows of each corpus; default: once


class StoreBatches(Generic[BatchT]):
    """Batches of a store under a token budget; each epoch is planned on first use."""

    def __init__(
        self,
        store: Store,
        collate: Callable[[NDArray[np.int64]], BatchT] | None = None,
        *,
        src_lengths: NDArray[np.int32],
        tgt_lengths: NDArray[np.int32],
        max_tokens: int,
        seed: int,
        device: torch.device = CPU,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        """Plan batches of ``collate(rows)``; subclasses may have ``_collate_rows`` instead.

        The lengths (R,) are those of the collated rows, in tokens, EOS included.

        Raises DataError if a row does not fit into any batch, ConfigError if an epoch would be empty.
        """
        try:
            require_fit(src_lengths, tgt_lengths, max_tokens=max_tokens)
        except DataError as error:
            raise DataError(f"{store.folder}: {error}") from None
        self.store, self.max_tokens, self.seed, self._device = store, max_tokens, seed, device
        self._collate, self._src_lengths, self._tgt_lengths = collate, src_lengths, tgt_lengths
        n_pairs_of = store.summary.n_examples_of
        self._weights = [(weights or {}).get(corpus, 1.0) for corpus in n_pairs_of]
        self._planned: tuple[int, _Plan] | None = None
        if not any(n_reads(n, weight, 1) for weight, n in zip(self._weights, n_pairs_of.values(), strict=True)):
            raise ConfigError(f"data.corpus: some epochs would have no pair with the weights {weights}; raise them")

    def n_batches(self, epoch: int) -> int:
        """Number of batches in ``epoch``."""
        return len(self._plan(epoch).batches)

    def n_rows(self, epoch: int, index: int) -> int:
        """Number of rows in a batch."""
        return len(self._plan(epoch).batches[index])

    def n_tokens(self, epoch: int, index: int) -> tuple[int, int]:
        """Number of source and target tokens in a batch, EOS included."""
        plan = self._plan(epoch)
        rows = plan.batches[index]
        return int(plan.src_lengths_R[rows].sum()), int(plan.tgt_lengths_R[rows].sum())

    def batch(self, epoch: int, index: int, *, part: int = 0, n_parts: int = 1) -> BatchT:
        """Return a batch, or every ``n_parts``-th row from ``part``: rows are sorted by length, so parts are alike."""
        return self._collate_rows(epoch, self._plan(epoch).batches[index][part::n_parts])

    def largest(self, epoch: int) -> list[int]:
        """Return the indices of the batch with the most tokens and of the one with the largest attention matrices."""
        plan = self._plan(epoch)
        src_lengths, tgt_lengths = plan.src_lengths_R.astype(np.int64), plan.tgt_lengths_R.astype(np.int64)
        costs = []
        for rows in plan.batches:
            n_src, n_tgt = int(src_lengths[rows].max()), int(tgt_lengths[rows].max())
            n_attention_weights = len(rows) * (n_src * n_src + n_tgt * n_tgt + n_src * n_tgt)
            costs.append((int(src_lengths[rows].sum() + tgt_lengths[rows].sum()), n_attention_weights))
        return sorted({max(range(len(costs)), key=lambda index: costs[index][kind]) for kind in (0, 1)})

    def name(self, epoch: int, index: int) -> str:
        """Describe a batch for messages: index, epoch and its first rows in the store."""
        rows = self._plan(epoch).batches[index]
        first_rows = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
        return f"batch {index} of epoch {epoch} (rows {first_rows} of the store)"

    def statistics(self, epoch: int) -> BatchStatistics:
        """Return token and padding counts of an epoch."""
        plan = self._plan(epoch)
        return batch_statistics(plan.src_lengths_R, plan.tgt_lengths_R, plan.batches)

    def _collate_rows(self, epoch: int, rows_B: NDArray[np.int64]) -> BatchT:
        assert self._collate is not None
        return self._collate(rows_B)

    def _lengths(self, epoch: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return self._src_lengths, self._tgt_lengths

    def _plan(self, epoch: int) -> _Plan:
        if self._planned is None or self._planned[0] != epoch:
            self._planned = epoch, self._new_plan(epoch)
        return self._planned[1]

    def _new_plan(self, epoch: int) -> _Plan:
        lengths, rows_I = self._lengths(epoch), self._rows(epoch)
        batches = plan_batches(*lengths, max_tokens=self.max_tokens, seed=self.seed, epoch=epoch, rows_I=rows_I)
        return _Plan(batches, *lengths)

    def _rows(self, epoch: int) -> NDArray[np.int64]:
        """The rows that an epoch reads, (I,)."""
        summary = self.store.summary
        n_pairs = list(summary.n_examples_of.values())
        return epoch_rows(n_pairs, self._weights, n_encodings=summary.n_encodings, seed=self.seed, epoch=epoch)


class PairBatches(StoreBatches[Batch]):
    """Batches of a pair store.

    In the first ``bidirectional_epochs`` epochs half of the pairs are reversed (target to source), alternating halves.
    """

    def __init__(self, store: PairStore, *, bidirectional_epochs: int = 0, **options: Unpack[BatchOptions]) -> None:
        super().__init__(store, src_lengths=store.src_lengths, tgt_lengths=store.tgt_lengths, **options)
        self._bidirectional_epochs = bidirectional_epochs

    def _collate_rows(self, epoch: int, rows_B: NDArray[np.int64]) -> Batch:
        reversed_R = self._reversed(epoch)
        reversed_B = None if reversed_R is None else reversed_R[rows_B]
        return collate(self.store, rows_B, reversed_B=reversed_B).to(self._device)

    def _lengths(self, epoch: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        src, tgt = super()._lengths(epoch)
        reversed_R = self._reversed(epoch)
        return (src, tgt) if reversed_R is None else (np.where(reversed_R, tgt, src), np.where(reversed_R, src, tgt))

    def _reversed(self, epoch: int) -> NDArray[np.bool_] | None:
        """Mask of the rows whose source and target are swapped in ``epoch``, (R,); None for no row."""
        is_bidirectional = epoch < self._bidirectional_epochs
        return reversed_rows(len(self.store), seed=self.seed, epoch=epoch) if is_bidirectional else None
