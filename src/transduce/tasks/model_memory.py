"""Whether a model fits into memory, by its configuration alone: said before anything of it is built."""

from __future__ import annotations

from pathlib import Path

import torch

from transduce.config import ModelConfig, TrainingConfig, TransformerConfig
from transduce.errors import CheckpointError, TrainingError
from transduce.model import cost_of
from transduce.training import DistributedContext
from transduce.training.memory import require_free

__all__ = ["bytes_to_train", "require_room_to_search", "require_room_to_train"]

BYTES = 4  # of a weight, a gradient or a moment: they stay fp32, whatever products are computed in
BYTES_OF_BF16 = 2


def bytes_to_train(model: ModelConfig, training: TrainingConfig, *, n_parts: int = 1, searches: bool = True) -> int:
    """Of weights, gradient, moments and copies, beside the batches; in each process of ``n_parts`` that divide them.

    Adam has two moments of each weight, Muon one of the matrices of the layers. With bf16, products read copies of the
    matrices; where validation ``searches``, it reads weights in an order of its own.
    """
    cost = cost_of(model)
    n_moments = 2 * cost.parameters
    if training.optimiser == "muon" and isinstance(model, TransformerConfig):
        n_moments -= cost.parameters_of_matrices
    held = BYTES * (2 * cost.parameters + n_moments) // n_parts
    bf16 = BYTES_OF_BF16 * cost.parameters_of_matrices if training.precision == "bf16" else 0
    built = BYTES * cost.parameters  # before it is divided, and where it is put together for validation
    copies = max(bf16, built if searches or n_parts > 1 else 0)
    return held + copies


def require_room_to_train(
    model: ModelConfig,
    training: TrainingConfig,
    device: torch.device,
    *,
    distributed: DistributedContext | None = None,
    is_sharded: bool = False,
) -> None:
    """Raises TrainingError if a model cannot be trained in the memory that is free."""
    n, distributed = cost_of(model).parameters, distributed or DistributedContext()
    searches = training.validation_bleu and device.type == "cpu"
    require_free(
        bytes_to_train(model, training, n_parts=distributed.n if is_sharded else 1, searches=searches),
        device,
        what=f"training a model of {n:,} parameters (weights, gradient, moments and copies, without any batch)",
        help="choose a smaller model (fewer layers, smaller d_model or d_ff), or free some memory",
        error=TrainingError,
        n_processes=distributed.n_local,
    )


def require_room_to_search(model: ModelConfig, device: torch.device, *, where: Path) -> None:
    """Raises CheckpointError if a model cannot be loaded, and its copy for search be made, in what is free."""
    n = cost_of(model).parameters
    once = BYTES * n
    places = [(2 * once, device)] if device.type == "cpu" else [(once, torch.device("cpu")), (2 * once, device)]
    for n_bytes, place in places:
        require_free(
            n_bytes,
            place,
            what=f"{where}: a model of {n:,} parameters",
            help="end other programs, or take a machine with more memory",
            error=CheckpointError,
        )
