"""The gradient of an update: over its batches, over their shares in several processes, one mean over all tokens.

Randomness is a function of (seed, update, share of the update): the generator is set anew for each share, so a run that
was stopped and resumed draws the same dropout masks as one that was not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
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
    "BatchIndex",
    "BatchShard",
    "BatchSource",
    "Gradient",
    "GradientAccumulator",
    "Objective",
    "Stateful",
    "TrainableBatch",
]

BatchIndex = tuple[int, int]  # epoch and index of a batch


class TrainableBatch(Protocol):
    """What training must know of a batch, whatever the task."""

    def tensors(self) -> Mapping[str, Tensor]:
        """All that the objective reads, to be kept where something went wrong."""


BatchT = TypeVar("BatchT", bound=TrainableBatch)
BatchT_co = TypeVar("BatchT_co", bound=TrainableBatch, covariant=True)
BatchT_contra = TypeVar("BatchT_contra", bound=TrainableBatch, contravariant=True)


class Objective(Protocol[BatchT_contra]):
    """What is minimised: a sum over the target tokens of a batch. It may be ``Stateful``."""

    def __call__(self, batch: BatchT_contra, update: int, /) -> LossSum:
        """The loss of one batch, after so many updates."""


@runtime_checkable
class Stateful(Protocol):
    """An objective that remembers something from update to update, which a resumed run needs, too."""

    def state(self) -> dict[str, Tensor]:
        """What it remembers, by name."""

    def load_state(self, state: Mapping[str, Tensor], /) -> None:
        """Remember what ``state`` gave. Raises CheckpointError if it cannot be that."""


class BatchSource(Protocol[BatchT_co]):
    """Batches by place, so that a run can go on in the middle of an epoch."""

    def n_batches(self, epoch: int, /) -> int:
        """How many batches this epoch has."""

    def n_rows(self, epoch: int, index: int, /) -> int:
        """Rows of a batch, at least one."""

    def n_tokens(self, epoch: int, index: int, /) -> tuple[int, int]:
        """Source tokens of a batch, end symbols included, and target tokens that are predicted."""

    def batch(self, epoch: int, index: int, /, *, part: int = 0, n_parts: int = 1) -> BatchT_co:
        """One of them, or the rows ``part``, ``part + n_parts``, ... of it, which must be at least one."""

    def largest(self, epoch: int, /) -> Sequence[int]:
        """Those that may need the most memory."""

    def name(self, epoch: int, index: int, /) -> str:
        """Words that let a person find it, for error messages."""


@dataclass(frozen=True, slots=True)
class BatchShard:
    """What one process takes of one batch of an update."""

    number: int  # among all shares of the update
    batch_index: BatchIndex
    part: int
    n_parts: int


@dataclass(frozen=True, slots=True)
class Gradient:
    """What is known of a gradient beside the tensors, which lie in the weights. The same in all processes."""

    losses_nats: tuple[float, ...]  # smoothed, of each share
    nlls_nats: tuple[float, ...]  # not smoothed
    n_src_tokens: int
    n_tgt_tokens: int
    norm: float  # before clipping

    @property
    def is_finite(self) -> bool:
        """Whether a step may be made with it."""
        return math.isfinite(sum(self.losses_nats)) and math.isfinite(self.norm)


class GradientAccumulator(Generic[BatchT]):
    """Makes the gradient of a model's weights, alone or with the other processes of a run."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective[BatchT],
        batches: BatchSource[BatchT],
        config: TrainingConfig,
        distributed: DistributedContext,
    ) -> None:
        self.batches, self.config, self.distributed = batches, config, distributed
        self._weights = list(model.parameters())
        self.device = self._weights[0].device
        self._loss_of, self._without_sync = in_parallel(model, objective, distributed)

    def make(
        self, batch_indices: Sequence[BatchIndex], *, update: int, should_stop: Callable[[], bool] = lambda: False
    ) -> Gradient | None:
        """The gradient over the batches at ``batch_indices``, divided once by all their target tokens, then clipped.

        None, without a gradient, if ``should_stop`` says so between two batches. It is asked where one process trains;
        several decide together, between updates.
        """
        counts = [self.batches.n_tokens(*batch_index) for batch_index in batch_indices]
        n_src_tokens, n_tgt_tokens = (sum(side) for side in zip(*counts, strict=True))
        own = list(self.own_shards(batch_indices))
        self.clear()
        sums: list[Tensor] = []
        for shard in own:
            if sums and self.distributed.n == 1 and should_stop():
                self.clear()
                return None
            sums.append(self._backward(shard, update=update, n_tgt_tokens=n_tgt_tokens, is_last=shard is own[-1]))
        sums_P2 = torch.stack(sums)
        norm = self._clip()
        by_process = self.distributed.all_gather(sums_P2.flatten())
        # (process, its sums) to (sum, share): the first share of each process, then the second of each, ...
        losses, nlls = by_process.view(self.distributed.n, len(own), 2).permute(2, 1, 0).flatten(1).tolist()
        return Gradient(tuple(losses), tuple(nlls), n_src_tokens, n_tgt_tokens, norm)

    def loss_of(self, batch: BatchT, *, update: int) -> LossSum:
        """The objective in the precision of the run, after so many updates."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bf16"):
            return self._loss_of(batch, update)

    def clear(self) -> None:
        """Forget the gradient."""
        for weight in self._weights:
            weight.grad = None

    def all_shards(self, batch_indices: Sequence[BatchIndex]) -> list[BatchShard]:
        """What the batches at ``batch_indices`` are divided into, in order."""
        of_process = [list(self._shards_of(rank, batch_indices)) for rank in range(self.distributed.n)]
        return sorted((shard for own in of_process for shard in own), key=lambda shard: shard.number)

    def own_shards(self, batch_indices: Sequence[BatchIndex]) -> Iterator[BatchShard]:
        """What this process takes of them."""
        return self._shards_of(self.distributed.rank, batch_indices)

    @property
    def gradient_bytes(self) -> int:
        """The memory that a gradient takes in this process."""
        return sum(weight.numel() * weight.itemsize for weight in map(local_tensor, self._weights))

    def batch_of(self, shard: BatchShard) -> BatchT | None:
        """The batch of a share; None where a batch has fewer rows than parts."""
        if shard.part >= self.batches.n_rows(*shard.batch_index):
            return None
        return self.batches.batch(*shard.batch_index, part=shard.part, n_parts=shard.n_parts)

    def _shards_of(self, rank: int, batch_indices: Sequence[BatchIndex]) -> Iterator[BatchShard]:
        n = self.distributed.n
        for position, (index, part, n_parts) in enumerate(assign_shards(len(batch_indices), n, rank)):
            yield BatchShard(rank + n * position, batch_indices[index], part, n_parts)

    def _backward(self, shard: BatchShard, *, update: int, n_tgt_tokens: int, is_last: bool) -> Tensor:
        """Add the gradient of a share to the weights; returns its sums, (2,)."""
        torch.manual_seed(_mix(self.config.seed, update, shard.number))
        # DDP and FSDP take the mean over the processes; this makes it the sum again.
        weight = float(self.distributed.n)
        batch = self.batch_of(shard)
        if batch is None:  # gradients are exchanged by all or none: take part, for nothing
            batch, weight = self.batches.batch(*shard.batch_index, part=0, n_parts=shard.n_parts), 0.0
        with nullcontext() if is_last else self._without_sync():
            loss = self.loss_of(batch, update=update)
            (loss.total_nats * (weight / n_tgt_tokens)).backward()  # type: ignore[no-untyped-call]
        sums_2 = torch.stack((loss.total_nats.detach(), loss.nll_nats))
        return sums_2 if weight else torch.zeros_like(sums_2)

    def _clip(self) -> float:
        """The norm of the whole gradient, which is scaled down to ``clip_norm`` where one is set."""
        norm = full_tensor(get_total_norm([weight.grad for weight in self._weights if weight.grad is not None]))
        if self.config.clip_norm is not None:
            clip_grads_with_norm_(self._weights, self.config.clip_norm, norm.to(self.device))
        return float(norm)


def _mix(*numbers: int) -> int:
    """One seed out of several numbers, far apart for neighbours (FNV-1a over 64 bits)."""
    mixed = 0xCBF29CE484222325
    for number in numbers:
        mixed = ((mixed ^ number) * 0x100000001B3) % 2**63
    return mixed
