"""One model in several processes: DDP, or FSDP2 for models that do not fit. Both are torch's.

DDP keeps all weights in each process and averages gradients. FSDP2 divides weights, gradients and moments among the
processes. Checkpoints know neither: they hold whole tensors, so that a run goes on with another number of processes.
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

if TYPE_CHECKING:  # torch takes most of a second to load them, and most runs have one process
    from torch.distributed.fsdp import FSDPModule
    from torch.distributed.tensor import DTensor

__all__ = ["full_tensor", "in_parallel", "is_sharded", "like", "local_tensor", "shard", "without_gathered_weights"]

BatchT = TypeVar("BatchT")


def shard(model: nn.Module) -> None:
    """Divide a model among the processes, layer by layer, before it has an optimiser (FSDP2)."""
    from torch.distributed.fsdp import fully_shard

    for module in reversed(list(model.modules())):  # the inner ones first
        if isinstance(module, nn.ModuleList):
            for layer in module:
                fully_shard(layer)
    fully_shard(model)
    # The states of a batch are a view; nobody writes into them.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor", category=UserWarning)


def is_sharded(model: nn.Module) -> TypeGuard[FSDPModule]:
    """Whether ``shard`` has divided it."""
    fsdp: Any = sys.modules.get("torch.distributed.fsdp")
    return fsdp is not None and isinstance(model, fsdp.FSDPModule)


def in_parallel(
    model: nn.Module, objective: Callable[[BatchT, int], LossSum], distributed: DistributedContext
) -> tuple[Callable[[BatchT, int], LossSum], Callable[[], AbstractContextManager[None]]]:
    """The objective whose gradients are means over the processes, and a context in which they stay those of each."""
    if distributed.n == 1 or is_sharded(model):
        return objective, nullcontext
    ddp: Any = nn.parallel.DistributedDataParallel
    # Buffers are tables of positions and of what begins a word, the same in all processes. The option has a new name
    # since torch 2.13.
    names = signature(ddp).parameters
    no_buffers = {"forward_sync_buffers" if "forward_sync_buffers" in names else "broadcast_buffers": False}
    both = ddp(_WithModel(model, objective), gradient_as_bucket_view=True, **no_buffers)
    return both, both.no_sync


class _WithModel(nn.Module):
    """An objective as a module that owns the model's weights, which is what DDP wraps."""

    def __init__(self, model: nn.Module, objective: Callable[[Any, int], LossSum]) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, batch: Any, update: int) -> LossSum:
        return self.objective(batch, update)


def full_tensor(tensor: Tensor) -> Tensor:
    """All of a tensor. Where it is divided, each process gets it on its CPU, and all must ask."""
    return tensor.full_tensor().cpu() if _is_distributed(tensor) else tensor


def local_tensor(tensor: Tensor) -> Tensor:
    """What this process holds of a tensor; all of it where it is not divided."""
    return tensor.to_local() if _is_distributed(tensor) else tensor


def like(tensor: Tensor, model_tensor: Tensor) -> Tensor:
    """``tensor`` on the device of ``model_tensor`` and, if that is divided and of the same shape, divided as it is."""
    tensor = tensor.to(model_tensor.device)
    if not _is_distributed(model_tensor) or tensor.shape != model_tensor.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor, model_tensor.device_mesh, model_tensor.placements, src_data_rank=None)


def without_gathered_weights(model: nn.Module) -> None:
    """Let go of the weights that FSDP2 keeps whole between forward and backward, so that each is a part again."""
    for module in model.modules():
        if is_sharded(module):
            module.reshard()


def _is_distributed(tensor: Tensor) -> TypeGuard[DTensor]:
    """Whether a tensor is spread over processes. Where it is, somebody has loaded its type."""
    distributed: Any = sys.modules.get("torch.distributed.tensor")
    return distributed is not None and isinstance(tensor, distributed.DTensor)
