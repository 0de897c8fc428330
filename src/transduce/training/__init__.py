"""Training, section 5: gradients, learning rate schedule, optimiser, update loop, checkpoints, averaging, records.

Independent of tasks: it sees an ``Objective`` and a ``BatchSource``; ``transduce.tasks`` provides them.
"""

from transduce.loss import LossSum, cross_entropy, cross_entropy_reference, r_drop, r_drop_reference, smoothing_weights
from transduce.training.averaging import average_weights, averaged_checkpoints, best_update, checkpoints_around
from transduce.training.checkpoint import (
    TrainState,
    checkpoint_folders,
    full_weights,
    load_weights,
    newest_complete,
    read_run_settings,
    read_state,
    set_aside_misnamed,
    set_aside_newer,
)
from transduce.training.distributed import DistributedContext, local_device, torchrun_context
from transduce.training.gradients import BatchSource, Objective, Stateful
from transduce.training.memory import PeakMemory
from transduce.training.optimiser import make_optimiser
from transduce.training.parallel import shard
from transduce.training.records import (
    CheckpointRecord,
    Listener,
    MetricsFile,
    Record,
    Score,
    SkipRecord,
    UpdateRecord,
    Validate,
    Validation,
    ValidationRecord,
)
from transduce.training.schedule import inverse_sqrt_lr, learning_rate, peak_learning_rate
from transduce.training.tensorboard import TensorBoardEvents
from transduce.training.trainer import StopReason, Trainer

__all__ = [
    "BatchSource", "CheckpointRecord", "DistributedContext", "Listener", "LossSum", "MetricsFile", "Objective",
    "PeakMemory", "Record", "Score", "SkipRecord", "Stateful", "StopReason", "TensorBoardEvents", "TrainState",
    "Trainer", "UpdateRecord", "Validate", "Validation", "ValidationRecord", "average_weights",
    "averaged_checkpoints", "best_update", "checkpoint_folders", "checkpoints_around", "cross_entropy",
    "cross_entropy_reference", "full_weights", "inverse_sqrt_lr", "learning_rate", "load_weights", "local_device",
    "make_optimiser", "newest_complete", "peak_learning_rate", "r_drop", "r_drop_reference", "read_run_settings",
    "read_state", "set_aside_misnamed", "set_aside_newer", "shard", "smoothing_weights", "torchrun_context",
]  # fmt: skip
