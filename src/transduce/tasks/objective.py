"""What training minimises for every task whose data are pairs: batches from a store, the objective over a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import floor

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.config import TrainingConfig
from transduce.data import (
    Batch,
    BatchStatistics,
    PairStore,
    batch_statistics,
    collate,
    epoch_rows,
    plan_batches,
    require_fit,
    turned_rows,
)
from transduce.errors import ConfigError, DataError
from transduce.loss import LossConfig, LossSum
from transduce.model import AuxiliaryLosses, EncoderDecoder

__all__ = ["PairObjective", "StoreBatches"]


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """What an epoch reads: the rows of each batch, and for all rows of the store which way and how long they are."""

    batches: list[NDArray[np.int64]]
    src_lengths_N: NDArray[np.int32]
    tgt_lengths_N: NDArray[np.int32]
    turned_N: NDArray[np.bool_] | None  # those that are read from target to source


class StoreBatches:
    """The batches of every epoch, planned when first asked for."""

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
        """``weights``: how often an epoch reads the pairs of each corpus of the store; once, where they are missing.

        The first ``both_ways_epochs`` epochs read half of the pairs from target to source, and the next one the others.
        Raises DataError if a pair is too long for any batch, ConfigError if there are epochs that read nothing.
        """
        try:
            require_fit(store.src_lengths, store.tgt_lengths, max_tokens=max_tokens)
        except DataError as error:
            raise DataError(f"{store.folder}: {error}") from None
        self.store, self.max_tokens, self.seed, self.device = store, max_tokens, seed, device
        self._weights = [(weights or {}).get(corpus, 1.0) for corpus in store.summary.n_pairs_of]
        self._both_ways_epochs = both_ways_epochs
        self._planned: tuple[int, _Plan] | None = None
        n_pairs_of = store.summary.n_pairs_of
        if not sum(floor(weight * n) for weight, n in zip(self._weights, n_pairs_of.values(), strict=True)):
            raise ConfigError(f"data.corpus: with these weights there are epochs without any pair, got {weights}")

    def n_batches(self, epoch: int) -> int:
        """How many batches this epoch has."""
        return len(self._plan(epoch).batches)

    def n_rows(self, epoch: int, index: int) -> int:
        """Pairs of a batch."""
        return len(self._plan(epoch).batches[index])

    def n_tokens(self, epoch: int, index: int) -> tuple[int, int]:
        """Source and target tokens of a batch, end symbols included."""
        plan = self._plan(epoch)
        rows = plan.batches[index]
        return int(plan.src_lengths_N[rows].sum()), int(plan.tgt_lengths_N[rows].sum())

    def batch(self, epoch: int, index: int, *, part: int = 0, n_parts: int = 1) -> Batch:
        """One of them, or every ``n_parts``-th pair of it: a part has about equal lengths, as they stand in order."""
        plan = self._plan(epoch)
        rows = plan.batches[index][part::n_parts]
        return collate(self.store, rows, turned_B=None if plan.turned_N is None else plan.turned_N[rows]).to(
            self.device
        )

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
        """Where it stands, and its first pairs in the store."""
        rows = self._plan(epoch).batches[index]
        some = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
        return f"batch {index} of epoch {epoch} (rows {some} of the store)"

    def statistics(self, epoch: int) -> BatchStatistics:
        """How full the batches of an epoch are."""
        plan = self._plan(epoch)
        return batch_statistics(plan.src_lengths_N, plan.tgt_lengths_N, plan.batches)

    def _plan(self, epoch: int) -> _Plan:
        if self._planned is None or self._planned[0] != epoch:
            self._planned = epoch, self._new_plan(epoch)
        return self._planned[1]

    def _new_plan(self, epoch: int) -> _Plan:
        store, seed = self.store, self.seed
        n_pairs_of, n_encodings = list(store.summary.n_pairs_of.values()), store.summary.n_encodings
        rows_R = epoch_rows(n_pairs_of, self._weights, n_encodings=n_encodings, seed=seed, epoch=epoch)
        src_lengths_N, tgt_lengths_N, turned_N = store.src_lengths, store.tgt_lengths, None
        if epoch < self._both_ways_epochs:
            turned_N = turned_rows(len(store), seed=seed, epoch=epoch)
            src_lengths_N = np.where(turned_N, store.tgt_lengths, store.src_lengths)
            tgt_lengths_N = np.where(turned_N, store.src_lengths, store.tgt_lengths)
        batches = plan_batches(
            src_lengths_N, tgt_lengths_N, max_tokens=self.max_tokens, seed=seed, epoch=epoch, rows_R=rows_R
        )
        return _Plan(batches, src_lengths_N, tgt_lengths_N, turned_N)


class PairObjective:
    """Label-smoothed cross-entropy of the target given the source. Sections 3.1 and 5.4."""

    def __init__(self, model: EncoderDecoder, config: TrainingConfig) -> None:
        self.model, self.config = model, config

    def __call__(self, batch: Batch, update: int = 0) -> LossSum:
        """The loss of one batch, after so many updates."""
        config, model = self.config, self.model
        is_twice = config.r_drop > 0 and update >= config.r_drop_after and model.training
        src_BS, tgt_BT = batch.src_BS, batch.tgt_in_BT
        if is_twice:
            src_BS, tgt_BT = src_BS.repeat(2, 1), tgt_BT.repeat(2, 1)
        auxiliary = AuxiliaryLosses() if model.training else None
        states_ND = model(src_BS, tgt_BT, auxiliary=auxiliary)
        if is_twice:
            states_ND = states_ND.unflatten(0, (2, -1))
        how = LossConfig(config.eps_ls, config.smoothing, config.r_drop)
        loss = model.output.loss(states_ND, batch.tgt_out_M, how)
        beside = None if auxiliary is None else auxiliary.total()
        return loss if beside is None else replace(loss, auxiliary_nats=beside / 2 if is_twice else beside)
