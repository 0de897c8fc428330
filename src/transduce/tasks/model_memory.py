"""Memory checks from a model's configuration alone, before anything is built."""

from __future__ import annotations

from pathlib import Path

import torch

from transduce.config import ModelConfig, TrainingConfig, TransformerConfig
from transduce.errors import CheckpointError, TrainingError
from transduce.model import cost_of
from transduce.training import DistributedContext
from transduce.training.memory import require_free

__all__ = ["bytes_to_train", "require_memory_to_search", "require_memory_to_train"]

BYTES = 4  # of a weight, a gradient or a moment: always fp32, whatever the precision of matrix products
BYTES_OF_BF16 = 2


def bytes_to_train(model: ModelConfig, training: TrainingConfig, *, n_parts: int = 1, searches: bool = True) -> int:
    """Return the bytes of weights, gradient, moments and copies (no batches) in each of ``n_parts`` sharded processes.

    Adam has two moments per weight, Muon one for the matrices of the layers. bf16 needs copies of the matrices;
    validation that ``searches`` needs a copy of the weights in another memory layout.
    """
    cost = cost_of(model)
    n_moments = 2 * cost.parameters
    if training.optimiser == "muon" and isinstance(model, TransformerConfig):
        n_moments -= cost.parameters_of_matrices
    sharded = BYTES * (2 * cost.parameters + n_moments) // n_parts
    bf16 = BYTES_OF_BF16 * cost.parameters_of_matrices if training.precision == "bf16" else 0
    full = BYTES * cost.parameters  # before sharding, and gathered for validation
    return sharded + max(bf16, full if searches or n_parts > 1 else 0)


def require_memory_to_train(
    model: ModelConfig,
    training: TrainingConfig,
    device: torch.device,
    *,
    distributed: DistributedContext | None = None,
    is_sharded: bool = False,
) -> None:
    """Raise TrainingError if the free memory is too small to train a model."""
    n, distributed = cost_of(model).parameters, distributed or DistributedContext()
    searches = training.validation_bleu and device.type == "cpu"
    require_free(
        bytes_to_train(model, training, n_parts=distributed.n if is_sharded else 1, searches=searches),
        device,
        what=f"training a model of {n:,} parameters (weights, gradient, moments and copies, without any batch)",
        help="use a smaller model (fewer layers, smaller d_model or d_ff), or free some memory",
        error=TrainingError,
        n_processes=distributed.n_local,
    )


def require_memory_to_search(model: ModelConfig, device: torch.device, *, where: Path) -> None:
    """Raise CheckpointError if the free memory is too small for a model and its copy for inference."""
    n = cost_of(model).parameters
    once = BYTES * n
    allocations = [(2 * once, device)] if device.type == "cpu" else [(once, torch.device("cpu")), (2 * once, device)]
    for n_bytes, target in allocations:
        require_free(
            n_bytes,
            target,
            what=f"{where}: a model of {n:,} parameters",
            help="close other programs, or use a machine with more memory",
            error=CheckpointError,
        )
