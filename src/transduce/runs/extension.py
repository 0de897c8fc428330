"""Extending a finished run: it goes on from its last checkpoint, with a schedule for what is added."""

from __future__ import annotations

import math
from pathlib import Path

from transduce.config import RunConfig, TrainingConfig, config_from_mapping
from transduce.errors import TrainingError
from transduce.findings.finding import counted
from transduce.runs.own_text import Log
from transduce.runs.run_file import CHECKPOINTS, read_run_config, require_run
from transduce.runs.update_timing import HEADROOM
from transduce.training import TrainState, newest_complete, read_state

__all__ = ["extended_run"]


def extended_run(folder: Path, minutes: float, log: Log) -> RunConfig:
    """Return the configuration with which the finished run in a folder is resumed for so many minutes more.

    Raises TrainingError if there is no finished run.
    """
    require_run(folder)
    config, checkpoint = read_run_config(folder), newest_complete(folder / CHECKPOINTS, log, is_locked=False)
    state = None if checkpoint is None else read_state(checkpoint)
    if state is None or not _is_finished(state, config.training):
        raise TrainingError(f"the run in {folder} has not finished; go on with --resume, then extend it")
    training = config.training
    n_more = max(1, round(minutes * 60 * state.update / max(state.elapsed_s, 1e-3)))
    extended_at = (*training.extended_at, state.update)
    changes: dict[str, object] = {"max_updates": state.update + n_more, "extended_at": extended_at}
    if training.max_minutes is not None:  # the clock ends it
        most = state.update + math.ceil(HEADROOM * n_more)
        changes |= {"max_updates": most, "max_minutes": state.elapsed_s / 60 + minutes}
    if training.patience is not None:  # it may have ended the run
        changes |= {"patience": None, "averaging": training.averaging or "best"}
    training = config_from_mapping(TrainingConfig, training.model_dump() | changes, where=f"--more {minutes:g}")
    log(f"about {counted(n_more, 'update')} more, from {state.update:,} on: {minutes:g} min")
    return config.model_copy(update={"training": training})


def _is_finished(state: TrainState, training: TrainingConfig) -> bool:
    return (
        state.update >= training.max_updates
        or (training.max_minutes is not None and state.elapsed_s >= 60 * training.max_minutes)
        or (training.patience is not None and state.validations_without_gain >= training.patience)
    )
