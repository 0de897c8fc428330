"""Time per update on this machine, measured on a throwaway model."""

from __future__ import annotations

import statistics
import tempfile
from itertools import pairwise
from pathlib import Path

import torch

from transduce.config import RunConfig
from transduce.errors import TrainingError
from transduce.model import make_model
from transduce.runs.memory import require_memory_to_train
from transduce.runs.run_file import CHECKPOINTS
from transduce.tasks.prepared import Prepared
from transduce.tasks.registry import task_of
from transduce.training import Record, Trainer, UpdateRecord, learning_rate
from transduce.training.memory_preflight import BatchTooLargeError

__all__ = ["HEADROOM", "UPDATE_TIME_FRACTION", "seconds_per_update"]

UPDATE_TIME_FRACTION = 0.93  # of the training time; the rest is for validation and checkpoints
HEADROOM = 1.5  # times the expected updates: as many does a machine that is quicker than it was when it was timed
N_UPDATES, N_WARM_UP = 14, 4  # the first updates are slower: kernel selection, memory allocation


def seconds_per_update(config: RunConfig, prepared: Prepared, device: torch.device) -> float:
    """Return the median time of some updates of a new model. Raises TrainingError if there is too little memory."""
    task, tokenizers = task_of(config), prepared.tokenizers
    model_config = task.model_config(config.model, *tokenizers.sizes)
    training = config.training.model_copy(update={"max_updates": N_UPDATES, "max_minutes": None})
    require_memory_to_train(model_config, training, device)
    times: list[float] = []

    def listen(record: Record) -> None:
        if isinstance(record, UpdateRecord):
            times.append(record.elapsed_s)

    with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng():
        torch.manual_seed(training.seed)
        model = make_model(model_config, tokenizers).to(device)
        trainer = Trainer(
            model=model,
            objective=task.objective(model, config),
            batches=task.batches(prepared.train, config, device),
            learning_rate=lambda step: learning_rate(step, d_model=model_config.d_model, config=training),
            config=training,
            checkpoints=Path(folder) / CHECKPOINTS,
            listeners=[listen],
        )
        try:
            trainer.run()
        except BatchTooLargeError as error:  # there is no run yet whose settings could change
            raise TrainingError(f"updates cannot be timed: {error.problem}; free some memory") from error
    return statistics.median(after - before for before, after in pairwise(times[N_WARM_UP:]))
