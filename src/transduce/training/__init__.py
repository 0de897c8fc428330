"""Training as section 5 has it: gradients, schedule, optimiser, update loop, checkpoints, averaging, records.

Knows an ``Objective`` and a ``BatchSource``, no task: see ``transduce.tasks`` for those.
"""

from transduce.loss import LossSum, cross_entropy, cross_entropy_reference, r_drop, r_drop_reference, smoothing_weights
from transduce.training.checkpoint import (
    TrainState,
    average_weights,
    averaged_checkpoints,
    checkpoint_folders,
    load_weights,
    newest_complete,
    read_begun_with,
    read_state,
    read_tensors,
    set_aside_misnamed,
    set_aside_newer,
    weights_of,
    whole_weights,
    write_tensors,
)
from transduce.training.gradients import BatchSource, Objective, Stateful
from transduce.training.optimiser import make_optimiser
from transduce.training.parallel import shard
from transduce.training.processes import Processes, device_of_process, processes_of_torchrun
from transduce.training.records import (
    CheckpointRecord,
    Listener,
    MetricsFile,
    Record,
    Score,
    SkipRecord,
    UpdateRecord,
    ValidationRecord,
)
from transduce.training.schedule import inverse_sqrt_lr, learning_rate
from transduce.training.tensorboard import TensorBoardEvents
from transduce.training.trainer import StopReason, Trainer, Validate, Validation

__all__ = [
    "BatchSource", "CheckpointRecord", "Listener", "LossSum", "MetricsFile", "Objective", "Processes",
    "Record", "Score", "SkipRecord", "Stateful", "StopReason", "TensorBoardEvents", "TrainState", "Trainer",
    "UpdateRecord", "Validate", "Validation", "ValidationRecord", "average_weights", "averaged_checkpoints",
    "checkpoint_folders", "cross_entropy", "cross_entropy_reference", "device_of_process", "inverse_sqrt_lr",
    "learning_rate", "load_weights", "make_optimiser", "newest_complete", "processes_of_torchrun",
    "r_drop", "r_drop_reference", "read_begun_with", "read_state", "read_tensors", "set_aside_misnamed",
    "set_aside_newer", "shard", "smoothing_weights", "weights_of", "whole_weights", "write_tensors",
]  # fmt: skip
