"""The batches of every epoch, by their numbers, so that a run can go on in the middle of one."""

# N rows of the store, R rows that an epoch reads, B rows of a batch

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.data.batching import BatchStatistics, batch_statistics, plan_batches, require_fit
from transduce.data.collate import Batch, collate
from transduce.data.pairs import PairStore
from transduce.data.sampling import epoch_rows, reversed_rows
from transduce.data.store import Store
from transduce.errors import ConfigError, DataError

__all__ = ["PairBatches", "StoreBatches"]

BatchT = TypeVar("BatchT")


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """What an epoch reads: the rows of each batch, and how long all rows of the store are."""

    batches: list[NDArray[np.int64]]
    src_lengths_N: NDArray[np.int32]
    tgt_lengths_N: NDArray[np.int32]


class StoreBatches(Generic[BatchT]):
    """The batches of a store, planned epoch by epoch when first asked for, under a token budget."""

    def __init__(
        self,
        store: Store,
        collate: Callable[[NDArray[np.int64]], BatchT],
        *,
        src_lengths: NDArray[np.int32],
        tgt_lengths: NDArray[np.int32],
        max_tokens: int,
        seed: int,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        """``collate`` makes a batch of rows; the lengths (N,) are those of what it makes of each row, on either side.

        ``weights``: how often an epoch reads the rows of each corpus of the store; once, where they are missing.
        Raises DataError if a row is too long for any batch, ConfigError if there are epochs that read nothing.
        """
        try:
            require_fit(src_lengths, tgt_lengths, max_tokens=max_tokens)
        except DataError as error:
            raise DataError(f"{store.folder}: {error}") from None
        self.store, self.max_tokens, self.seed = store, max_tokens, seed
        self._collate, self._src_lengths, self._tgt_lengths = collate, src_lengths, tgt_lengths
        n_pairs_of = store.summary.n_pairs_of
        self._weights = [(weights or {}).get(corpus, 1.0) for corpus in n_pairs_of]
        self._planned: tuple[int, _Plan] | None = None
        if not sum(floor(weight * n) for weight, n in zip(self._weights, n_pairs_of.values(), strict=True)):
            raise ConfigError(f"data.corpus: with these weights there are epochs without any pair, got {weights}")

    def n_batches(self, epoch: int) -> int:
        """How many batches this epoch has."""
        return len(self._plan(epoch).batches)

    def n_rows(self, epoch: int, index: int) -> int:
        """Rows of a batch."""
        return len(self._plan(epoch).batches[index])

    def n_tokens(self, epoch: int, index: int) -> tuple[int, int]:
        """Source and target tokens of a batch, end symbols included."""
        plan = self._plan(epoch)
        rows = plan.batches[index]
        return int(plan.src_lengths_N[rows].sum()), int(plan.tgt_lengths_N[rows].sum())

    def batch(self, epoch: int, index: int, *, part: int = 0, n_parts: int = 1) -> BatchT:
        """One of them, or every ``n_parts``-th row of it: a part has about equal lengths, as they stand in order."""
        return self._of_rows(epoch, self._plan(epoch).batches[index][part::n_parts])

    def largest(self, epoch: int) -> list[int]:
        """The batch with the most tokens, and that with the most cells of attention."""
        plan = self._plan(epoch)
        src_lengths, tgt_lengths = plan.src_lengths_N.astype(np.int64), plan.tgt_lengths_N.astype(np.int64)
        costs = []
        for rows in plan.batches:
            n_src, n_tgt = int(src_lengths[rows].max()), int(tgt_lengths[rows].max())
            n_cells = len(rows) * (n_src * n_src + n_tgt * n_tgt + n_src * n_tgt)
            costs.append((int(src_lengths[rows].sum() + tgt_lengths[rows].sum()), n_cells))
        return sorted({max(range(len(costs)), key=lambda index: costs[index][kind]) for kind in (0, 1)})

    def name(self, epoch: int, index: int) -> str:
        """Where it stands, and its first rows in the store."""
        rows = self._plan(epoch).batches[index]
        some = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
        return f"batch {index} of epoch {epoch} (rows {some} of the store)"

    def statistics(self, epoch: int) -> BatchStatistics:
        """How full the batches of an epoch are."""
        plan = self._plan(epoch)
        return batch_statistics(plan.src_lengths_N, plan.tgt_lengths_N, plan.batches)

    def _of_rows(self, epoch: int, rows_B: NDArray[np.int64]) -> BatchT:
        return self._collate(rows_B)

    def _lengths(self, epoch: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return self._src_lengths, self._tgt_lengths

    def _plan(self, epoch: int) -> _Plan:
        if self._planned is None or self._planned[0] != epoch:
            self._planned = epoch, self._new_plan(epoch)
        return self._planned[1]

    def _new_plan(self, epoch: int) -> _Plan:
        summary, seed, lengths = self.store.summary, self.seed, self._lengths(epoch)
        n_pairs, n_encodings = list(summary.n_pairs_of.values()), summary.n_encodings
        rows_R = epoch_rows(n_pairs, self._weights, n_encodings=n_encodings, seed=seed, epoch=epoch)
        batches = plan_batches(*lengths, max_tokens=self.max_tokens, seed=seed, epoch=epoch, rows_R=rows_R)
        return _Plan(batches, *lengths)


class PairBatches(StoreBatches[Batch]):
    """The batches of a store of pairs.

    The first ``both_ways_epochs`` epochs read half of the pairs from target to source, and the next one the others.
    """

    def __init__(
        self,
        store: PairStore,
        *,
        max_tokens: int,
        seed: int,
        device: torch.device,
        weights: Mapping[str, float] | None = None,
        both_ways_epochs: int = 0,
    ) -> None:
        super().__init__(
            store,
            lambda rows_B: collate(store, rows_B).to(device),
            src_lengths=store.src_lengths,
            tgt_lengths=store.tgt_lengths,
            max_tokens=max_tokens,
            seed=seed,
            weights=weights,
        )
        self._device, self._both_ways_epochs = device, both_ways_epochs

    def _of_rows(self, epoch: int, rows_B: NDArray[np.int64]) -> Batch:
        reversed_N = self._reversed(epoch)
        if reversed_N is None:
            return super()._of_rows(epoch, rows_B)
        return collate(self.store, rows_B, reversed_B=reversed_N[rows_B]).to(self._device)

    def _lengths(self, epoch: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        src, tgt = super()._lengths(epoch)
        reversed_N = self._reversed(epoch)
        return (src, tgt) if reversed_N is None else (np.where(reversed_N, tgt, src), np.where(reversed_N, src, tgt))

    def _reversed(self, epoch: int) -> NDArray[np.bool_] | None:
        """Which rows of the store are read from target to source."""
        is_both_ways = epoch < self._both_ways_epochs
        return reversed_rows(len(self.store), seed=self.seed, epoch=epoch) if is_both_ways else None
