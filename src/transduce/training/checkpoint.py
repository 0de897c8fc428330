"""Checkpoints: folders of safetensors and JSON, written atomically and verified before use.

``checkpoints/update-00001000/{model.safetensors, optimizer.safetensors, state.json, manifest.json}``, and
``objective.safetensors`` for a stateful objective.

``state.json`` has the fields of ``TrainState``, the format number, and ``begun_with``, the settings of the run; early
versions lack the last two. Symbolic links are rejected, to folders and to files.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn, optim

from transduce.errors import CheckpointError, DataError, TrainingError, quoted
from transduce.files import (
    MANIFEST_NAME,
    Migration,
    atomic_folder,
    is_leftover,
    migrated,
    read_json,
    remove,
    renamed_beside,
    restore,
    verify_manifest,
    write_json,
    write_manifest,
)
from transduce.model.weights import named_weights, require_like, weights_of
from transduce.model.weights_file import finite_tensors, read_tensors, write_tensors
from transduce.training.distributed import DistributedContext
from transduce.training.optimiser import moment_names
from transduce.training.parallel import full_tensor, like, without_gathered_weights

__all__ = [
    "CheckpointTrigger", "TrainState", "checkpoint_folders", "checkpoint_path", "full_weights", "load_checkpoint",
    "load_objective_state", "load_weights", "newest_complete", "read_run_settings", "read_state", "require_no_link",
    "save_checkpoint", "set_aside_misnamed", "set_aside_newer", "verify_checkpoint",
]  # fmt: skip

# Why a checkpoint was written: on schedule, validation improved, the run ended, or it was interrupted.
CheckpointTrigger = Literal["schedule", "best", "end", "stop"]

MODEL_FILE, OPTIMISER_FILE, STATE_FILE = "model.safetensors", "optimizer.safetensors", "state.json"
OBJECTIVE_FILE = "objective.safetensors"  # of a stateful objective
RUN_SETTINGS = "begun_with"  # key in state.json
STEP = "step"  # the only optimiser state that is a scalar


@dataclass(frozen=True, slots=True)
class TrainState:
    """Progress of a run. There is no random state: random numbers follow from seed and update."""

    update: int = 0  # completed updates
    epoch: int = 0  # counted from 0
    next_batch: int = 0  # index in this epoch's plan
    src_tokens: int = 0
    tgt_tokens: int = 0
    window_loss_nats: float = 0.0  # sums since the last logged record
    window_nll_nats: float = 0.0
    window_tgt_tokens: int = 0
    n_skipped: int = 0  # updates skipped for a non-finite loss or gradient
    validated_update: int | None = None  # update of the last validation
    best_by: str = "loss"  # what the best one is chosen by
    best_value: float | None = None
    best_update: int | None = None
    validations_without_gain: int = 0
    elapsed_s: float = 0.0
    cause: CheckpointTrigger = "schedule"

    @property
    def is_scheduled(self) -> bool:
        """Whether an uninterrupted run would also have written this checkpoint."""
        return self.cause in ("schedule", "best") or (self.cause == "end" and self.best_update == self.update)


def full_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return every weight as a full tensor; a collective call if the model is sharded."""
    without_gathered_weights(model)
    return {name: full_tensor(weight) for name, weight in weights_of(model).items()}


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], *, where: Path) -> None:
    """Copy weights into a model. Raises CheckpointError if names, shapes or dtypes do not fit."""
    own = named_weights(model)
    require_like(weights, own, where=where)
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(like(weights[name], weight))


def checkpoint_path(folder: Path, update: int) -> Path:
    """Return the path of the checkpoint after ``update``."""
    return folder / f"update-{update:08d}"


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    optimiser: optim.Optimizer,
    state: TrainState,
    distributed: DistributedContext | None = None,
    *,
    run_settings: Mapping[str, Any] | None = None,
    objective_state: Mapping[str, Tensor] | None = None,
) -> Path:
    """Write ``folder/update-N`` and return its path. A collective call; rank 0 writes.

    ``run_settings`` (JSON values) and a non-empty ``objective_state`` are saved with it.

    Raises TrainingError if it cannot be written, for example on a full disk; older checkpoints are kept.
    """
    path = checkpoint_path(folder, state.update)
    without_gathered_weights(model)
    is_first = distributed is None or distributed.is_first
    weights = _full_tensors(weights_of(model), keep=is_first)
    moments = _full_tensors(
        {
            f"{name}/{key}": value
            for name, weight in named_weights(model).items()
            for key, value in optimiser.state[weight].items()
        },
        keep=is_first,
    )
    if is_first:
        values = {"format": len(MIGRATIONS), **asdict(state)}
        if run_settings is not None:
            values[RUN_SETTINGS] = dict(run_settings)
        try:
            if os.path.lexists(path) and not _has_only_checkpoint_files(path):
                _set_aside(path)
            with atomic_folder(path, replace=True) as temporary:
                write_tensors(temporary / MODEL_FILE, weights)
                write_tensors(temporary / OPTIMISER_FILE, moments)
                if objective_state:
                    write_tensors(temporary / OBJECTIVE_FILE, objective_state)
                write_json(temporary / STATE_FILE, values)
                write_manifest(temporary)
        except OSError as error:
            raise TrainingError(
                f"{path} cannot be written: {error.strerror or error}; {_newest_in(folder)}; free some space, then "
                "use --resume"
            ) from error
        except DataError as error:
            raise TrainingError(f"{error}; {_newest_in(folder)}; use --resume") from error
    return path


def _has_only_checkpoint_files(path: Path) -> bool:
    """Whether a folder holds only files of a checkpoint, so that it may be replaced."""
    known = {MODEL_FILE, OPTIMISER_FILE, OBJECTIVE_FILE, STATE_FILE, MANIFEST_NAME}
    return path.is_dir() and not path.is_symlink() and {each.name for each in path.iterdir()} <= known


def _newest_in(folder: Path) -> str:
    """Name the newest checkpoint, as a clause of a message."""
    names = [path.name for path in checkpoint_folders(folder)]
    return f"the newest checkpoint is {names[-1]}" if names else "there is no checkpoint yet"


def _full_tensors(tensors: Mapping[str, Tensor], *, keep: bool) -> dict[str, Tensor]:
    """Gather full tensors, one at a time; a collective call for sharded tensors. Empty unless ``keep``."""
    full = {}
    for name, tensor in tensors.items():
        complete = full_tensor(tensor.detach())
        if keep:
            full[name] = complete
    return full


def load_checkpoint(path: Path, model: nn.Module, optimiser: optim.Optimizer) -> TrainState:
    """Load model and optimiser from a checkpoint and return its state.

    Raises CheckpointError if anything is missing, corrupt or does not fit; model and optimiser are then unchanged.
    """
    verify_checkpoint(path)
    state = read_state(path)
    weights, moments = finite_tensors(path / MODEL_FILE), finite_tensors(path / OPTIMISER_FILE)
    own, scalar = named_weights(model), torch.zeros(())
    require_like(weights, own, where=path / MODEL_FILE)
    names = {name: moment_names(optimiser, weight) for name, weight in own.items()}
    expected = {f"{name}/{key}": scalar if key == STEP else own[name] for name, keys in names.items() for key in keys}
    require_like(moments, expected, where=path / OPTIMISER_FILE)
    load_weights(model, weights, where=path / MODEL_FILE)
    for name, weight in own.items():
        optimiser.state[weight] = {key: like(moments[f"{name}/{key}"], weight) for key in names[name]}
    return state


def load_objective_state(path: Path) -> dict[str, Tensor]:
    """Return the objective's state in a verified checkpoint, if any. Raises CheckpointError if it is corrupt."""
    return read_tensors(path / OBJECTIVE_FILE) if os.path.lexists(path / OBJECTIVE_FILE) else {}


def verify_checkpoint(path: Path) -> None:
    """Raise CheckpointError if a checkpoint is incomplete, corrupt or a symbolic link."""
    require_no_link(path)
    verify_manifest(path, error=CheckpointError, required=(MODEL_FILE, OPTIMISER_FILE, STATE_FILE))


def require_no_link(path: Path) -> None:
    """Raise CheckpointError if a checkpoint is a symbolic link."""
    if path.is_symlink():
        raise CheckpointError(f"{path} is a link, not a folder; replace it by the checkpoint itself")


def newest_complete(folder: Path, log: Callable[[str], None], *, is_locked: bool = True) -> Path | None:
    """Return the newest complete checkpoint with finite values; None if there is no checkpoint at all.

    ``log`` receives a line about each one skipped. ``is_locked``: the caller holds the run lock; without it, one that a
    trainer is replacing is left alone. Raises CheckpointError if none of the existing ones is usable.
    """
    restore_checkpoints(folder, is_locked=is_locked)
    newest_first = checkpoint_folders(folder)[::-1]
    for path in newest_first:
        try:
            verify_checkpoint(path)
            read_state(path)
            for name in (MODEL_FILE, OPTIMISER_FILE):
                finite_tensors(path / name)
        except CheckpointError as error:
            log(f"warning: passed over {path.name}: {error}")
        else:
            return path
    if newest_first:
        raise CheckpointError(
            f"no checkpoint in {folder} can be used; restore one, or move the folder away to start again"
        )
    return None


def restore_checkpoints(folder: Path, *, is_locked: bool = True) -> None:
    """Restore checkpoints whose replacement was interrupted; without the lock, none that a process may be replacing."""
    for path in folder.glob(".update-*.old"):
        target = folder / path.name.split(".")[1]
        if is_leftover(path, of=target.name):
            restore(target, is_exclusive=is_locked)


def set_aside_newer(path: Path) -> None:
    """Rename the checkpoints after ``path``, which were skipped as unusable: the resumed run will write them again."""
    folders = checkpoint_folders(path.parent)
    for newer in folders[folders.index(path) + 1 :]:
        _set_aside(newer)


def set_aside_misnamed(folder: Path, log: Callable[[str], None]) -> None:
    """Rename copies of checkpoints under wrong names, which would be averaged by mistake; logs a line about each."""
    for path in checkpoint_folders(folder):
        with suppress(CheckpointError):  # unreadable ones stay
            state = _state_in(path)
            if _is_misnamed(path, state):
                aside = _set_aside(path)
                log(f"warning: {path.name} is of update {state.update:,}, a copy; it is now {aside.name}")


def _set_aside(path: Path) -> Path:
    aside = path.with_name(f"passed-over-{path.name}")
    if os.path.lexists(aside) and _has_only_checkpoint_files(aside):
        remove(aside)
    return renamed_beside(path, aside) if os.path.lexists(aside) else path.rename(aside)


def read_state(path: Path) -> TrainState:
    """Read the state in ``state.json`` of a checkpoint, and nothing else.

    Raises CheckpointError if it is invalid, or if its update is not the one in the folder's name.
    """
    state = _state_in(path)
    if _is_misnamed(path, state):
        raise CheckpointError(f"{path} is a copy of the checkpoint of update {state.update:,}; move it away")
    return state


def _is_misnamed(path: Path, state: TrainState) -> bool:
    """Whether the folder's name and its state disagree about the update."""
    is_name = re.fullmatch(r"update-\d{8,}", path.name) is not None
    return is_name and path.name != checkpoint_path(path.parent, state.update).name


def _state_in(path: Path) -> TrainState:
    values = read_json(path / STATE_FILE, error=CheckpointError)
    values.pop(RUN_SETTINGS, None)
    values = migrated(values, MIGRATIONS, where=path / STATE_FILE, error=CheckpointError)
    known = {field.name for field in fields(TrainState)}
    if values.keys() != known:
        raise CheckpointError(
            f"{path / STATE_FILE}: the fields {quoted(sorted(values.keys() ^ known))} do not fit this version"
        )
    for field in fields(TrainState):
        if not _is_valid(values[field.name], str(field.type)):
            raise CheckpointError(f"{path / STATE_FILE}: {field.name} cannot be {quoted(values[field.name])}")
    return TrainState(**values)


def _state_of_format_1(values: Mapping[str, Any]) -> dict[str, Any]:
    """Migrate the first checkpoints: missing fields get defaults. A field added later needs its own migration."""
    return {"n_skipped": 0, "validated_update": None, **values}


def _state_of_format_2(values: Mapping[str, Any]) -> dict[str, Any]:
    """Migrate states of when only the loss could choose the best checkpoint."""
    renamed = {"best_value" if name == "best_nll_nats" else name: value for name, value in values.items()}
    return {"best_by": "loss", **renamed}


MIGRATIONS: tuple[Migration, ...] = (_state_of_format_1, _state_of_format_2)  # of state.json


def read_run_settings(path: Path) -> dict[str, Any] | None:
    """Return the run settings copied into a checkpoint; None if an early version wrote it.

    Raises CheckpointError if ``state.json`` is corrupt.
    """
    verify_manifest(path, error=CheckpointError, only=[STATE_FILE])
    run_settings = read_json(path / STATE_FILE, error=CheckpointError).get(RUN_SETTINGS)
    if run_settings is not None and not isinstance(run_settings, dict):
        raise CheckpointError(f"{path / STATE_FILE} should have a table {RUN_SETTINGS!r}, got {quoted(run_settings)}")
    return run_settings


def _is_valid(value: Any, annotation: str) -> bool:
    """Whether a value of ``state.json`` fits the type of its field: numbers are finite, counts not negative."""
    match annotation.removesuffix(" | None"):
        case _ if value is None:
            return annotation.endswith("None")
        case "int":
            return type(value) is int and 0 <= value < 2**63
        case "float":
            return type(value) in (int, float) and abs(value) <= sys.float_info.max
        case "str":
            return type(value) is str
        case _:
            return value in get_args(CheckpointTrigger)


def checkpoint_folders(folder: Path) -> list[Path]:
    """Return the checkpoints in ``folder``, oldest first. Unfinished ones have other names and are ignored."""
    candidates = (path for path in folder.glob("update-*") if path.is_dir() or path.is_symlink())
    named = (path for path in candidates if re.fullmatch(r"update-\d{8,}", path.name))
    return sorted(named, key=lambda path: (int(path.name.removeprefix("update-")), path.name))
