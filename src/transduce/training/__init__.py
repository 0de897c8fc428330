"""Training as section 5 has it: loss, schedule, optimiser, update loop, checkpoints, averaging, records.

Knows an ``Objective`` and a ``BatchSource``, no task: see ``transduce.tasks`` for those.
"""

from __future__ import annotations

from transduce.training.checkpoint import (
    TrainState,
    average_weights,
    checkpoint_folders,
    load_weights,
    read_state,
    read_tensors,
    weights_of,
)
from transduce.training.loss import LossSum, cross_entropy, cross_entropy_reference, smoothing_weights
from transduce.training.optimiser import make_optimiser
from transduce.training.records import (
    CheckpointRecord,
    Listener,
    MetricsFile,
    Record,
    UpdateRecord,
    ValidationRecord,
)
from transduce.training.schedule import inverse_sqrt_lr
from transduce.training.tensorboard import TensorBoardEvents
from transduce.training.trainer import BatchSource, Objective, StopReason, Trainer, Validation

__all__ = [
    "BatchSource",
    "CheckpointRecord",
    "Listener",
    "LossSum",
    "MetricsFile",
    "Objective",
    "Record",
    "StopReason",
    "TensorBoardEvents",
    "TrainState",
    "Trainer",
    "UpdateRecord",
    "Validation",
    "ValidationRecord",
    "average_weights",
    "checkpoint_folders",
    "cross_entropy",
    "cross_entropy_reference",
    "inverse_sqrt_lr",
    "load_weights",
    "make_optimiser",
    "read_state",
    "read_tensors",
    "smoothing_weights",
    "weights_of",
]
