"""Gradient accumulation over micro-batches and processes; the loss is the mean over all target tokens of the update.

The random generator is seeded from (seed, update, shard) for each shard, so a resumed run draws the same dropout masks
as an uninterrupted one.

Shapes: P shards of this process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from transduce.config import TrainingConfig
from transduce.loss import LossSum
from transduce.training.distributed import DistributedContext, assign_shards
from transduce.training.parallel import full_tensor, in_parallel, local_tensor

__all__ = [
    "BatchIndex", "BatchShard", "BatchSource", "Gradient", "GradientAccumulator", "Measuring", "Objective",
    "PartlyFrozen", "Stateful", "TrainableBatch", "hash_seed", "restoring_state",
]  # fmt: skip

BatchIndex = tuple[int, int]  # epoch, and index of the batch in its plan


class TrainableBatch(Protocol):
    """A batch of any task."""

    def tensors(self) -> Mapping[str, Tensor]:
        """Return all tensors that the objective reads, for the non-finite dump."""


BatchT = TypeVar("BatchT", bound=TrainableBatch)
BatchT_co = TypeVar("BatchT_co", bound=TrainableBatch, covariant=True)
BatchT_contra = TypeVar("BatchT_contra", bound=TrainableBatch, contravariant=True)


class Objective(Protocol[BatchT_contra]):
    """Training objective: the loss summed over the target tokens of a batch. It may be ``Stateful``.

    Beside the batch and such a state, the loss depends on the update number only, so a resumed run continues exactly.
    """

    def __call__(self, batch: BatchT_contra, update: int, /) -> LossSum:
        """Return the loss of one batch after ``update`` updates."""


@runtime_checkable
class Stateful(Protocol):
    """An objective with a state, which is saved in checkpoints."""

    def state(self) -> dict[str, Tensor]:
        """Return the state, as tensors by name."""

    def load_state(self, state: Mapping[str, Tensor], /) -> None:
        """Load a result of ``state``. Raises CheckpointError if it does not fit."""


@runtime_checkable
class PartlyFrozen(Stateful, Protocol):
    """An objective with a state that changes in part: the rest, such as the weights of a reference, never does."""

    def changing_state(self) -> dict[str, Tensor]:
        """Return the part of ``state`` that changes."""

    def load_changing_state(self, state: Mapping[str, Tensor], /) -> None:
        """Load a result of ``changing_state``."""


@runtime_checkable
class Measuring(Protocol):
    """An objective that measures more than its loss, such as the reward of a policy.

    Where the loss is not that of tokens, so that it has no perplexity, the progress shows these values.
    """

    def measured(self) -> Mapping[str, tuple[float, float]]:
        """Return sum and number of the values of each measure since the last call; a collective call."""


@contextmanager
def restoring_state(objective: object, is_undone: Callable[[], bool]) -> Iterator[None]:
    """Restore the state of an objective, if it has one, after the block if ``is_undone()``."""
    if not isinstance(objective, Stateful):
        yield
        return
    state, load_state = objective.state, objective.load_state
    if isinstance(objective, PartlyFrozen):
        state, load_state = objective.changing_state, objective.load_changing_state
    before = {name: tensor.clone() for name, tensor in state().items()}
    try:
        yield
    finally:
        if is_undone():
            load_state(before)


class BatchSource(Protocol[BatchT_co]):
    """Batches addressed by (epoch, index), so that a run can resume in the middle of an epoch."""

    def n_batches(self, epoch: int, /) -> int:
        """Number of batches in ``epoch``."""

    def n_rows(self, epoch: int, index: int, /) -> int:
        """Number of rows in a batch, at least one."""

    def n_tokens(self, epoch: int, index: int, /) -> tuple[int, int]:
        """Number of source tokens in a batch, EOS included, and of predicted target tokens."""

    def batch(self, epoch: int, index: int, /, *, part: int = 0, n_parts: int = 1) -> BatchT_co:
        """Return the rows ``part``, ``part + n_parts``, ... of a batch; there must be at least one."""

    def largest(self, epoch: int, /) -> Sequence[int]:
        """Return the indices of the batches that may need the most memory."""

    def name(self, epoch: int, index: int, /) -> str:
        """Describe a batch for error messages."""


@dataclass(frozen=True, slots=True)
class BatchShard:
    """The part of a micro-batch that one process computes."""

    number: int  # among all shards of the update
    batch_index: BatchIndex
    part: int
    n_parts: int


@dataclass(frozen=True, slots=True)
class Gradient:
    """Summary of an accumulated gradient, the same on all ranks; its tensors are the ``grad`` of the weights."""

    losses_nats: tuple[float, ...]  # of each shard, with label smoothing and auxiliary losses
    nlls_nats: tuple[float, ...]  # of each shard, without both
    n_src_tokens: int
    n_tgt_tokens: int
    norm: float  # before clipping

    @property
    def is_finite(self) -> bool:
        """Whether loss and norm are finite, so that the optimiser may make a step."""
        return math.isfinite(sum(self.losses_nats)) and math.isfinite(self.norm)


class GradientAccumulator(Generic[BatchT]):
    """Accumulate the gradient of an update over micro-batches, in one process or several."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective[BatchT],
        batches: BatchSource[BatchT],
        config: TrainingConfig,
        distributed: DistributedContext,
    ) -> None:
        self.batches, self.config, self.distributed = batches, config, distributed
        self._objective, self._weights = objective, list(model.parameters())
        self.device = self._weights[0].device
        self._loss_of, self._without_sync = in_parallel(model, objective, distributed)

    def accumulate(
        self, batch_indices: Sequence[BatchIndex], *, update: int, should_stop: Callable[[], bool] = lambda: False
    ) -> Gradient | None:
        """Compute the gradient over the batches, divided once by all their target tokens, then clipped.

        Returns None, and clears the gradient, if ``should_stop`` is true between two batches. With several
        processes it is ignored here: they decide together, between updates.
        """
        counts = [self.batches.n_tokens(*batch_index) for batch_index in batch_indices]
        n_src_tokens, n_tgt_tokens = (sum(side) for side in zip(*counts, strict=True))
        shards = list(self.local_shards(batch_indices))
        self.clear()
        sums: list[Tensor] = []
        for shard in shards:
            if sums and self.distributed.n == 1 and should_stop():
                self.clear()
                return None
            sums.append(self._backward(shard, update=update, n_tgt_tokens=n_tgt_tokens, is_last=shard is shards[-1]))
        sums_P2 = torch.stack(sums)
        norm = self._clip()
        # Losses and norm are read together: on a GPU the host waits for them.
        by_rank = self.distributed.all_gather(torch.cat((sums_P2.flatten(), norm.view(1).to(sums_P2))))
        # (rank, its sums) to (sum, shard): the first shard of each rank, then the second of each, ...
        by_kind = by_rank[:, :-1].reshape(self.distributed.n, len(shards), 2).permute(2, 1, 0).flatten(1)
        losses, nlls = by_kind.tolist()
        return Gradient(tuple(losses), tuple(nlls), n_src_tokens, n_tgt_tokens, norm=float(by_rank[0, -1]))

    def loss_of(self, batch: BatchT, *, update: int) -> LossSum:
        """Evaluate the objective after ``update`` updates, in the precision of the run."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bf16"):
            return self._loss_of(batch, update)

    def clear(self) -> None:
        """Clear the gradient."""
        for weight in self._weights:
            weight.grad = None

    def all_shards(self, batch_indices: Sequence[BatchIndex]) -> list[BatchShard]:
        """Return the shards of all ranks, in order."""
        shards = (shard for rank in range(self.distributed.n) for shard in self._shards_of(rank, batch_indices))
        return sorted(shards, key=lambda shard: shard.number)

    def local_shards(self, batch_indices: Sequence[BatchIndex]) -> Iterator[BatchShard]:
        """Return the shards of this process."""
        return self._shards_of(self.distributed.rank, batch_indices)

    @property
    def gradient_bytes(self) -> int:
        """Memory of the gradient in this process."""
        return sum(weight.numel() * weight.itemsize for weight in map(local_tensor, self._weights))

    def batch_of(self, shard: BatchShard) -> BatchT | None:
        """Return the batch of a shard; None if it is empty, because the batch has fewer rows than parts."""
        if shard.part >= self.batches.n_rows(*shard.batch_index):
            return None
        return self.batches.batch(*shard.batch_index, part=shard.part, n_parts=shard.n_parts)

    def _shards_of(self, rank: int, batch_indices: Sequence[BatchIndex]) -> Iterator[BatchShard]:
        n = self.distributed.n
        for local_number, (index, part, n_parts) in enumerate(assign_shards(len(batch_indices), n, rank)):
            yield BatchShard(rank + n * local_number, batch_indices[index], part, n_parts)

    def _backward(self, shard: BatchShard, *, update: int, n_tgt_tokens: int, is_last: bool) -> Tensor:
        """Add the gradient of a shard to the weights; return its loss and negative log-likelihood, (2,)."""
        torch.manual_seed(hash_seed(self.config.seed, update, shard.number))
        # DDP and FSDP average over the processes; this factor turns the mean into a sum.
        scale = float(self.distributed.n)
        batch = self.batch_of(shard)
        uncounted: AbstractContextManager[None] = nullcontext()
        if batch is None:  # every rank must take part in the all-reduce: contribute zero
            batch, scale = self.batches.batch(*shard.batch_index, part=0, n_parts=shard.n_parts), 0.0
            uncounted = restoring_state(self._objective, lambda: True)
        with uncounted, nullcontext() if is_last else self._without_sync():
            loss = self.loss_of(batch, update=update)
            (loss.total_nats * (scale / n_tgt_tokens)).backward()  # type: ignore[no-untyped-call]
        sums_2 = torch.stack((loss.total_nats.detach(), loss.nll_nats))
        return sums_2 if scale else torch.zeros_like(sums_2)

    def _clip(self) -> Tensor:
        """Clip the gradient to ``clip_norm``, if set; return its norm before clipping."""
        norm = full_tensor(get_total_norm([weight.grad for weight in self._weights if weight.grad is not None]))
        if self.config.clip_norm is not None:
            clip_grads_with_norm_(self._weights, self.config.clip_norm, norm.to(self.device, non_blocking=True))
        return norm


def hash_seed(*numbers: int) -> int:
    """Hash several numbers into one seed (FNV-1a over 64 bits)."""
    hashed = 0xCBF29CE484222325
    for number in numbers:
        hashed = ((hashed ^ number) * 0x100000001B3) % 2**63
    return hashed
