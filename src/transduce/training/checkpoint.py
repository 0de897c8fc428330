"""Checkpoints: folders of safetensors and JSON, written whole or not at all, checked before use; and their mean.

``checkpoints/update-00001000/{model.safetensors, optimizer.safetensors, state.json, manifest.json}``, and
``objective.safetensors`` where the objective remembers something.

``state.json`` has the fields of ``TrainState`` and ``begun_with``, what the run was begun with; the latter, and the
number of the format, are missing in checkpoints of earlier versions. Folders and files are what they seem: none of them
is a link.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn, optim

from transduce.errors import CheckpointError, DataError, TrainingError, quoted, shown
from transduce.files import (
    MANIFEST_NAME,
    atomic_folder,
    is_leftover,
    migrated,
    read_json,
    remove,
    renamed_beside,
    require_regular,
    restore,
    verify_manifest,
    write_json,
    write_manifest,
)
from transduce.training.distributed import DistributedContext
from transduce.training.optimiser import moment_names
from transduce.training.parallel import full_tensor, like, without_gathered_weights

__all__ = [
    "CheckpointTrigger",
    "TrainState",
    "average_weights",
    "averaged_checkpoints",
    "checkpoint_folders",
    "checkpoint_path",
    "full_weights",
    "load_checkpoint",
    "load_objective_state",
    "load_weights",
    "newest_complete",
    "read_run_settings",
    "read_state",
    "read_tensors",
    "remove_old_checkpoints",
    "save_checkpoint",
    "set_aside_misnamed",
    "set_aside_newer",
    "tensors_in",
    "verify_checkpoint",
    "weights_of",
    "write_tensors",
]  # fmt: skip

# Why a checkpoint was written: at its time, because validation improved, at the end of the run, or as it was stopped.
CheckpointTrigger = Literal["schedule", "best", "end", "stop"]

MODEL_FILE, OPTIMISER_FILE, STATE_FILE = "model.safetensors", "optimizer.safetensors", "state.json"
OBJECTIVE_FILE = "objective.safetensors"  # where the objective remembers something
BEGUN_WITH = "begun_with"  # in state.json
FORMAT = 1  # of state.json
STEP = "step"  # the only moment that has not the shape of its weight


@dataclass(frozen=True, slots=True)
class TrainState:
    """Where a run stands, beside its tensors. Random numbers need no place here: they follow from seed and update."""

    update: int = 0  # done
    epoch: int = 0  # counted from 0
    next_batch: int = 0  # of this epoch's plan
    src_tokens: int = 0
    tgt_tokens: int = 0
    window_loss_nats: float = 0.0  # sums since the last logged record
    window_nll_nats: float = 0.0
    window_tgt_tokens: int = 0
    n_skipped: int = 0  # updates that were left out because something was not finite
    validated_update: int | None = None  # the last one after which the dev set was looked at
    best_nll_nats: float | None = None
    best_update: int | None = None
    validations_without_gain: int = 0
    elapsed_s: float = 0.0
    cause: CheckpointTrigger = "schedule"

    @property
    def is_scheduled(self) -> bool:
        """Whether a run that was never stopped has this checkpoint, too."""
        return self.cause in ("schedule", "best") or (self.cause == "end" and self.best_update == self.update)


@runtime_checkable
class HasNamesOnDisk(Protocol):
    """A model whose files have names of their own for its weights."""

    def canonical(self) -> dict[str, nn.Parameter]:
        """Every weight once, by its name on disk."""


def named_weights(model: nn.Module) -> dict[str, nn.Parameter]:
    """Every weight once, by its name on disk, or else by that of its first attribute: a tied matrix is one tensor."""
    return model.canonical() if isinstance(model, HasNamesOnDisk) else dict(model.named_parameters())


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The values of ``named_weights``."""
    return {name: weight.detach() for name, weight in named_weights(model).items()}


def full_weights(model: nn.Module) -> dict[str, Tensor]:
    """Every weight of a model that may be divided among processes, all of which must ask."""
    without_gathered_weights(model)
    return {name: full_tensor(weight) for name, weight in weights_of(model).items()}


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], *, where: Path) -> None:
    """Copy weights into a model. Raises CheckpointError if names, shapes or types are not the model's."""
    own = named_weights(model)
    _require_like(weights, own, where=where)
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(like(weights[name], weight))


def _require_like(tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor], *, where: Path) -> None:
    """Raises CheckpointError if ``tensors`` are not those ``wanted``, by name, shape and being of floating point."""
    if odd := sorted(wanted.keys() ^ tensors.keys()):
        side = "lacks" if odd[0] in wanted else "has an unknown"
        raise CheckpointError(f"{where} {side} tensor {shown(odd[0])}; it belongs to another architecture")
    for name, tensor in tensors.items():
        shape = tuple(wanted[name].shape)
        if tensor.shape != shape:
            raise CheckpointError(f"{where}: tensor {name} has shape {tuple(tensor.shape)}, the model wants {shape}")
        if not tensor.is_floating_point():
            raise CheckpointError(f"{where}: tensor {name} has dtype {tensor.dtype}, weights are floating point")


def read_tensors(path: Path, *, may_be_link: bool = False) -> dict[str, Tensor]:
    """A safetensors file. Raises CheckpointError if it cannot be read, or is no regular file nor a link to one."""
    return dict(tensors_in(path, may_be_link=may_be_link))


def _finite_tensors(path: Path) -> dict[str, Tensor]:
    """A file of a checkpoint. Raises CheckpointError also for a tensor with what is no finite number."""
    tensors = read_tensors(path)
    for name, tensor in tensors.items():
        if tensor.dtype not in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            raise CheckpointError(f"{path}: tensor {shown(name)} has dtype {tensor.dtype}, weights are floating point")
        if not tensor.isfinite().all():
            raise CheckpointError(f"{path}: tensor {shown(name)} holds values that are not finite")
    return tensors


def tensors_in(path: Path, *, may_be_link: bool = False) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a safetensors file with their names, one after the other. Raises CheckpointError likewise.

    They are copied out of the map of the file that the library makes: else a run that was resumed would end without a
    word as soon as somebody cuts the checkpoint that it went on from.
    """
    try:
        require_regular(path, error=CheckpointError, may_be_link=may_be_link)
        with safe_open(path, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118  (it is no dict)
                yield name, tensors.get_tensor(name).clone()
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error


def checkpoint_path(folder: Path, update: int) -> Path:
    """Where the checkpoint after ``update`` lies."""
    return folder / f"update-{update:08d}"


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file, in place of whatever has its name.

    Raises OSError if it cannot be written: the library has an error of its own for it.
    """
    remove(path)  # the library would write through a link
    try:
        save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    optimiser: optim.Optimizer,
    state: TrainState,
    distributed: DistributedContext | None = None,
    *,
    begun_with: Mapping[str, Any] | None = None,
    objective_state: Mapping[str, Tensor] | None = None,
) -> Path:
    """Write ``folder/update-N``; returns its path. The first process writes, all take part.

    ``begun_with`` is what the run was begun with, as JSON values, and is kept in the checkpoint; so is what the
    objective remembers, where that is something.

    Raises TrainingError if it cannot be written, as on a full disk; older ones stay as they are.
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
        values = {"format": FORMAT, **asdict(state)}
        if begun_with is not None:
            values[BEGUN_WITH] = dict(begun_with)
        try:
            if os.path.lexists(path) and not _is_only_a_checkpoint(path):
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
                f"{path} cannot be written: {error.strerror or error}; {_last_in(folder)}; make room, then go on with "
                "--resume"
            ) from error
        except DataError as error:
            raise TrainingError(f"{error}; {_last_in(folder)}; go on with --resume") from error
    return path


def _is_only_a_checkpoint(path: Path) -> bool:
    """Whether nothing but a checkpoint, or a part of one, would be lost with a folder."""
    own = {MODEL_FILE, OPTIMISER_FILE, OBJECTIVE_FILE, STATE_FILE, MANIFEST_NAME}
    return path.is_dir() and not path.is_symlink() and {each.name for each in path.iterdir()} <= own


def _last_in(folder: Path) -> str:
    """A clause about the newest checkpoint that there is."""
    names = [path.name for path in checkpoint_folders(folder)]
    return f"the last one is {names[-1]}" if names else "there is none yet"


def _full_tensors(tensors: Mapping[str, Tensor], *, keep: bool) -> dict[str, Tensor]:
    """Whole tensors; where they are divided all processes take part, and only some ``keep`` them."""
    kept = {}
    for name, tensor in tensors.items():
        complete = full_tensor(tensor.detach())
        if keep:
            kept[name] = complete
    return kept


def load_checkpoint(path: Path, model: nn.Module, optimiser: optim.Optimizer) -> TrainState:
    """Fill model and optimiser from a checkpoint and return where the run stood.

    Raises CheckpointError if anything is missing, corrupt or does not fit; model and optimiser are as before then.
    """
    verify_checkpoint(path)
    state = read_state(path)
    weights, moments = _finite_tensors(path / MODEL_FILE), _finite_tensors(path / OPTIMISER_FILE)
    own, zero = named_weights(model), torch.zeros(())
    _require_like(weights, own, where=path / MODEL_FILE)
    names = {name: moment_names(optimiser, weight) for name, weight in own.items()}
    wanted = {f"{name}/{key}": zero if key == STEP else own[name] for name, keys in names.items() for key in keys}
    _require_like(moments, wanted, where=path / OPTIMISER_FILE)
    load_weights(model, weights, where=path / MODEL_FILE)
    for name, weight in own.items():
        optimiser.state[weight] = {key: like(moments[f"{name}/{key}"], weight) for key in names[name]}
    return state


def load_objective_state(path: Path) -> dict[str, Tensor]:
    """What the objective remembered at a verified checkpoint, if anything. Raises CheckpointError if it is damaged."""
    return read_tensors(path / OBJECTIVE_FILE) if os.path.lexists(path / OBJECTIVE_FILE) else {}


def verify_checkpoint(path: Path) -> None:
    """Raises CheckpointError if a checkpoint is not complete, or not as it was written, or a link to one."""
    _require_no_link(path)
    verify_manifest(path, error=CheckpointError, required=(MODEL_FILE, OPTIMISER_FILE, STATE_FILE))


def _require_no_link(path: Path) -> None:
    if path.is_symlink():
        raise CheckpointError(f"{path} is a link, not a folder; put the checkpoint itself there")


def newest_complete(folder: Path, log: Callable[[str], None]) -> Path | None:
    """The newest checkpoint that is complete and finite; None where there is no checkpoint at all.

    ``log`` receives a line about each that is passed over. Raises CheckpointError if there are some, none of use.
    """
    restore_checkpoints(folder)
    newest_first = checkpoint_folders(folder)[::-1]
    for path in newest_first:
        try:
            verify_checkpoint(path)
            read_state(path)
            for name in (MODEL_FILE, OPTIMISER_FILE):
                _finite_tensors(path / name)
        except CheckpointError as error:
            log(f"warning: passed over {path.name}: {error}")
        else:
            return path
    if newest_first:
        raise CheckpointError(
            f"no checkpoint in {folder} can be used; bring one back, or move the folder away to begin anew"
        )
    return None


def restore_checkpoints(folder: Path) -> None:
    """Those that a process was killed while it replaced. Only for who holds the run: nobody else is replacing any."""
    for path in folder.glob(".update-*.old"):
        full_tensor = folder / path.name.split(".")[1]
        if is_leftover(path, of=full_tensor.name):
            restore(full_tensor, is_exclusive=True)


def set_aside_newer(path: Path) -> None:
    """Give the checkpoints after ``path`` other names: they were passed over, and the run will come by them again."""
    folders = checkpoint_folders(path.parent)
    for newer in folders[folders.index(path) + 1 :]:
        _set_aside(newer)


def set_aside_misnamed(folder: Path, log: Callable[[str], None]) -> None:
    """Give other names to copies of checkpoints, which would be averaged as what they are not; a line about each."""
    for path in checkpoint_folders(folder):
        with suppress(CheckpointError):  # what cannot be read stays
            state = _state_in(path)
            if _is_misnamed(path, state):
                aside = _set_aside(path)
                log(f"warning: {path.name} is of update {state.update:,}, a copy; it is now {aside.name}")


def _set_aside(path: Path) -> Path:
    aside = path.with_name(f"passed-over-{path.name}")
    if os.path.lexists(aside) and _is_only_a_checkpoint(aside):
        remove(aside)
    return renamed_beside(path, aside) if os.path.lexists(aside) else path.rename(aside)


def read_state(path: Path) -> TrainState:
    """Only the state in ``state.json`` of a checkpoint.

    Raises CheckpointError if it is not one, or of another update than the name of its folder says.
    """
    state = _state_in(path)
    if _is_misnamed(path, state):
        raise CheckpointError(f"{path} is a copy of the checkpoint of update {state.update:,}; move it away")
    return state


def _is_misnamed(path: Path, state: TrainState) -> bool:
    """Whether a folder has the name of the checkpoint of another update."""
    is_name = re.fullmatch(r"update-\d{8,}", path.name) is not None
    return is_name and path.name != checkpoint_path(path.parent, state.update).name


def _state_in(path: Path) -> TrainState:
    values = read_json(path / STATE_FILE, error=CheckpointError)
    values.pop(BEGUN_WITH, None)
    values = migrated(values, [_state_of_format_1], where=path / STATE_FILE, error=CheckpointError)
    known = {field.name for field in fields(TrainState)}
    if values.keys() != known:
        raise CheckpointError(
            f"{path / STATE_FILE}: the fields {quoted(sorted(values.keys() ^ known))} do not fit this version"
        )
    for field in fields(TrainState):
        if not _is_possible(values[field.name], str(field.type)):
            raise CheckpointError(f"{path / STATE_FILE}: {field.name} cannot be {quoted(values[field.name])}")
    return TrainState(**values)


def _state_of_format_1(values: Mapping[str, Any]) -> dict[str, Any]:
    """What was not there in the first checkpoints has its default. A field that comes later has a step of its own."""
    return {"n_skipped": 0, "validated_update": None, **values}


def read_run_settings(path: Path) -> dict[str, Any] | None:
    """What a checkpoint says that its run was begun with; None for one of an earlier version.

    Raises CheckpointError if that is not as it was written.
    """
    verify_manifest(path, error=CheckpointError, only=[STATE_FILE])
    begun_with = read_json(path / STATE_FILE, error=CheckpointError).get(BEGUN_WITH)
    if begun_with is not None and not isinstance(begun_with, dict):
        raise CheckpointError(f"{path / STATE_FILE} should have a table {BEGUN_WITH!r}, got {quoted(begun_with)}")
    return begun_with


def _is_possible(value: Any, kind: str) -> bool:
    """Whether a value of ``state.json`` may be that of a field: counts and sums are finite, and counts not negative."""
    match kind.removesuffix(" | None"):
        case _ if value is None:
            return kind.endswith("None")
        case "int":
            return type(value) is int and 0 <= value < 2**63
        case "float":
            return type(value) in (int, float) and abs(value) <= sys.float_info.max
        case _:
            return value in get_args(CheckpointTrigger)


def checkpoint_folders(folder: Path) -> list[Path]:
    """The checkpoints in ``folder``, oldest first. Unfinished ones have other names and are not seen."""
    found = (path for path in folder.glob("update-*") if path.is_dir() or path.is_symlink())
    named = (path for path in found if re.fullmatch(r"update-\d{8,}", path.name))
    return sorted(named, key=lambda path: (int(path.name.removeprefix("update-")), path.name))


def remove_old_checkpoints(folder: Path, *, keep: int, best_update: int | None) -> None:
    """Remove all but the newest checkpoint, the newest ``keep`` that may be averaged and the best one.

    Also sweeps away what a killed process has left half written or half removed. What cannot be read stays.
    """
    for leftover in folder.glob(".update-*"):
        if re.fullmatch(r"\.update-\d{8,}(\.\d+\.tmp|(\.\d+)?\.old)", leftover.name):
            remove(leftover)
    found = []
    for path in checkpoint_folders(folder):
        with suppress(CheckpointError):
            _require_no_link(path)
            found.append((path, read_state(path)))
    kept = {*_for_average(found, keep), *(path for path, _ in found[-1:])}
    for path, state in found:
        if path not in kept and state.update != best_update:
            doomed = path.rename(path.with_name(f".{path.name}.old"))  # no reader sees it half removed
            remove(doomed)  # what stays is swept away the next time


def averaged_checkpoints(folder: Path, last: int) -> list[Path]:
    """The newest ``last`` checkpoints that belong to the average of section 6.1, oldest first.

    Those written at their times, and the end of the run; not one that improved validation, nor a stop on the way.
    Raises CheckpointError if one does not say what it is: another average would be another model.
    """
    found = checkpoint_folders(folder)
    for path in found:
        _require_no_link(path)
    return _for_average([(path, read_state(path)) for path in found], last)


def _for_average(found: Sequence[tuple[Path, TrainState]], last: int) -> list[Path]:
    newest = [path for path, _ in found[-1:]]
    chosen = [path for path, state in found if state.cause == "schedule" or (state.cause == "end" and path in newest)]
    return chosen[-last:]


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of each weight over checkpoints, summed in float64. Section 6.1.

    Raises CheckpointError if there are none or they do not fit together.
    """
    if not paths:
        raise CheckpointError("there is no checkpoint to average")
    total: dict[str, Tensor] = {}
    for path in paths:
        verify_manifest(path, error=CheckpointError, required=(MODEL_FILE,))
        weights = _finite_tensors(path / MODEL_FILE)
        if total and weights.keys() != total.keys():
            raise CheckpointError(f"{path} holds other tensors than {paths[0]}; average checkpoints of one run")
        for name, weight in weights.items():
            total[name] = total[name] + weight.double() if name in total else weight.double()
    return {name: (weight / len(paths)).float() for name, weight in total.items()}
