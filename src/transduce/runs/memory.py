"""The memory of training, from a model's configuration alone, before anything is built."""

from __future__ import annotations

import torch

from transduce.config import ModelConfig, TrainingConfig, TransformerConfig
from transduce.errors import TrainingError
from transduce.memory import BYTES_PER_WEIGHT, require_free
from transduce.model import cost_of
from transduce.training import DistributedContext

__all__ = ["bytes_to_train", "require_memory_to_train"]

BYTES_OF_BF16 = 2


def bytes_to_train(model: ModelConfig, training: TrainingConfig, *, n_parts: int = 1, searches: bool = True) -> int:
    """Return the bytes per process of weights, gradient, moments and copies, without batches.

    ``n_parts`` processes share all but the copies. Adam has two moments per weight, Muon one for the layers' matrices.
    bf16 copies the matrices; validation that ``searches`` copies the weights into another memory layout.
    """
    cost = cost_of(model)
    n_moments = 2 * cost.parameters
    if training.optimiser == "muon" and isinstance(model, TransformerConfig):
        n_moments -= cost.parameters_of_matrices
    sharded = BYTES_PER_WEIGHT * (2 * cost.parameters + n_moments) // n_parts
    bf16 = BYTES_OF_BF16 * cost.parameters_of_matrices if training.precision == "bf16" else 0
    full = BYTES_PER_WEIGHT * cost.parameters  # before sharding, and gathered for validation
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
