"""Data parallelism with torch's DDP, or FSDP2 for models that do not fit on one device.

DDP replicates the weights and averages gradients. FSDP2 shards weights, gradients and optimiser state. Checkpoints hold
full tensors, so that a run can resume with another number of processes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from torch import Tensor, nn

from transduce.loss import LossSum
from transduce.training.distributed import DistributedContext

if TYPE_CHECKING:  # importing them takes most of a second, and most runs have one process
    from torch.distributed.fsdp import FSDPModule
    from torch.distributed.tensor import DTensor

__all__ = ["full_tensor", "in_parallel", "is_sharded", "like", "local_tensor", "shard", "without_gathered_weights"]

BatchT = TypeVar("BatchT")


def shard(model: nn.Module) -> None:
    """Shard a model over the processes, layer by layer (FSDP2); call it before making the optimiser."""
    from torch.distributed.fsdp import fully_shard

    for module in reversed(list(model.modules())):  # the inner ones first
        if isinstance(module, nn.ModuleList):
            for layer in module:
                fully_shard(layer)
    fully_shard(model)
    # The states of a batch are a view; nothing modifies them in place.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor", category=UserWarning)


def is_sharded(model: nn.Module) -> TypeGuard[FSDPModule]:
    """Whether ``shard`` was applied to a model."""
    fsdp: Any = sys.modules.get("torch.distributed.fsdp")
    return fsdp is not None and isinstance(model, fsdp.FSDPModule)


def in_parallel(
    model: nn.Module, objective: Callable[[BatchT, int], LossSum], distributed: DistributedContext
) -> tuple[Callable[[BatchT, int], LossSum], Callable[[], AbstractContextManager[None]]]:
    """Return the objective with gradients averaged over the ranks, and a context that suspends the averaging."""
    if distributed.n == 1 or is_sharded(model):
        return objective, nullcontext
    ddp: Any = nn.parallel.DistributedDataParallel
    # Buffers (position and word tables) are the same on all ranks. The option was renamed in torch 2.13.
    names = signature(ddp).parameters
    no_buffers = {"forward_sync_buffers" if "forward_sync_buffers" in names else "broadcast_buffers": False}
    wrapped = ddp(_ObjectiveModule(model, objective), gradient_as_bucket_view=True, **no_buffers)
    return wrapped, wrapped.no_sync


class _ObjectiveModule(nn.Module):
    """An objective as a module with the model's weights, for DDP to wrap."""

    def __init__(self, model: nn.Module, objective: Callable[[Any, int], LossSum]) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, batch: Any, update: int) -> LossSum:
        return self.objective(batch, update)


def full_tensor(tensor: Tensor) -> Tensor:
    """Return the full tensor; a sharded one is gathered to the CPU of each rank by a collective call."""
    return tensor.full_tensor().cpu() if _is_distributed(tensor) else tensor


def local_tensor(tensor: Tensor) -> Tensor:
    """Return the local shard of a tensor, or all of it if it is not sharded."""
    return tensor.to_local() if _is_distributed(tensor) else tensor


def like(tensor: Tensor, model_tensor: Tensor) -> Tensor:
    """Move ``tensor`` to the device of ``model_tensor``, sharded likewise if that is sharded and of the same shape."""
    tensor = tensor.to(model_tensor.device)
    if not _is_distributed(model_tensor) or tensor.shape != model_tensor.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor, model_tensor.device_mesh, model_tensor.placements, src_data_rank=None)


def without_gathered_weights(model: nn.Module) -> None:
    """Reshard the full weights that FSDP2 keeps between forward and backward."""
    for module in model.modules():
        if is_sharded(module):
            module.reshard()


def _is_distributed(tensor: Tensor) -> TypeGuard[DTensor]:
    """Whether a tensor is sharded; if one is, its module has been imported."""
    distributed: Any = sys.modules.get("torch.distributed.tensor")
    return distributed is not None and isinstance(tensor, distributed.DTensor)
