"""Checkpoints: folders of safetensors and JSON, written whole or not at all, checked before use; and their mean.

``checkpoints/update-00001000/{model.safetensors, optimizer.safetensors, state.json, manifest.json}``
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn, optim

from transduce.errors import CheckpointError
from transduce.files import atomic_folder, read_json, verify_manifest, write_json, write_manifest

__all__ = [
    "TrainState",
    "average_weights",
    "checkpoint_folders",
    "load_checkpoint",
    "load_weights",
    "read_state",
    "read_tensors",
    "remove_old_checkpoints",
    "save_checkpoint",
    "weights_of",
]

MODEL_FILE, OPTIMISER_FILE, STATE_FILE = "model.safetensors", "optimizer.safetensors", "state.json"


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
    best_nll_nats: float | None = None
    best_update: int | None = None
    validations_without_gain: int = 0
    elapsed_s: float = 0.0
    is_scheduled: bool = True  # saved at its time, not because the run was stopped; only such ones are averaged

    def with_changes(self, **changes: object) -> TrainState:
        """A copy with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Every weight once, by its first name: a tied matrix is one tensor."""
    return {name: weight.detach() for name, weight in model.named_parameters()}


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], *, where: Path) -> None:
    """Copy weights into a model. Raises CheckpointError if names or shapes are not exactly the model's."""
    own = dict(model.named_parameters())
    if odd := sorted(own.keys() ^ weights.keys()):
        side = "lacks" if odd[0] in own else "has an unknown"
        raise CheckpointError(f"{where} {side} tensor {odd[0]}; it belongs to another architecture")
    for name, weight in own.items():
        if weights[name].shape != weight.shape:
            raise CheckpointError(
                f"{where}: tensor {name} has shape {tuple(weights[name].shape)}, the model wants {tuple(weight.shape)}"
            )
        if not weights[name].is_floating_point():
            raise CheckpointError(f"{where}: tensor {name} has dtype {weights[name].dtype}, weights are floating point")
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(weights[name])


def read_tensors(path: Path) -> dict[str, Tensor]:
    """A safetensors file. Raises CheckpointError if it cannot be read."""
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error


def save_checkpoint(folder: Path, model: nn.Module, optimiser: optim.Optimizer, state: TrainState) -> Path:
    """Write ``folder/update-N``; returns its path."""
    path = folder / f"update-{state.update:08d}"
    moments = {
        f"{name}/{key}": value
        for name, weight in model.named_parameters()
        for key, value in optimiser.state[weight].items()
    }
    with atomic_folder(path, replace=True) as temporary:
        save_file({name: weight.contiguous() for name, weight in weights_of(model).items()}, temporary / MODEL_FILE)
        save_file(moments, temporary / OPTIMISER_FILE)
        write_json(temporary / STATE_FILE, asdict(state))
        write_manifest(temporary)
    return path


def load_checkpoint(path: Path, model: nn.Module, optimiser: optim.Optimizer) -> TrainState:
    """Fill model and optimiser from a checkpoint and return where the run stood.

    Raises CheckpointError if anything is missing, corrupt or does not fit.
    """
    verify_manifest(path, error=CheckpointError, required=(MODEL_FILE, OPTIMISER_FILE, STATE_FILE))
    load_weights(model, read_tensors(path / MODEL_FILE), where=path / MODEL_FILE)
    moments = read_tensors(path / OPTIMISER_FILE)
    for name, weight in model.named_parameters():
        prefix = f"{name}/"
        own = {key.removeprefix(prefix): value for key, value in moments.items() if key.startswith(prefix)}
        if not own:
            raise CheckpointError(f"{path / OPTIMISER_FILE} lacks the moments of {name}")
        optimiser.state[weight] = {key: value.to(weight.device) for key, value in own.items()}
    return read_state(path)


def read_state(path: Path) -> TrainState:
    """Only ``state.json`` of a checkpoint. Raises CheckpointError if it is not one."""
    values = read_json(path / STATE_FILE, error=CheckpointError)
    known = {field.name for field in fields(TrainState)}
    if values.keys() != known:
        raise CheckpointError(
            f"{path / STATE_FILE}: the fields {sorted(values.keys() ^ known)} do not fit this version"
        )
    return TrainState(**values)


def checkpoint_folders(folder: Path) -> list[Path]:
    """The checkpoints in ``folder``, oldest first. Unfinished ones have other names and are not seen."""
    found = (path for path in folder.glob("update-*") if path.is_dir())
    return sorted(path for path in found if re.fullmatch(r"update-\d{8,}", path.name))


def remove_old_checkpoints(folder: Path, *, keep: int, best_update: int | None) -> None:
    """Remove all but the newest checkpoint, the newest ``keep`` scheduled ones and the best one.

    Also sweeps away what a killed process has left half written or half removed.
    """
    for leftover in folder.glob(".update-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    newest_first = checkpoint_folders(folder)[::-1]
    states = [read_state(path) for path in newest_first]
    kept = {state.update for state in [state for state in states if state.is_scheduled][:keep]}
    kept.update(state.update for state in states[:1])
    for path, state in zip(newest_first, states, strict=True):
        if state.update not in kept and state.update != best_update:
            doomed = path.rename(path.with_name(f".{path.name}.old"))  # no reader sees it half removed
            shutil.rmtree(doomed)


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of each weight over checkpoints, summed in float64. Section 6.1.

    Raises CheckpointError if there are none or they do not fit together.
    """
    if not paths:
        raise CheckpointError("there is no checkpoint to average")
    total: dict[str, Tensor] = {}
    for path in paths:
        verify_manifest(path, error=CheckpointError, required=(MODEL_FILE,))
        weights = read_tensors(path / MODEL_FILE)
        if total and weights.keys() != total.keys():
            raise CheckpointError(f"{path} holds other tensors than {paths[0]}; average checkpoints of one run")
        for name, weight in weights.items():
            total[name] = total[name] + weight.double() if name in total else weight.double()
    return {name: (weight / len(paths)).float() for name, weight in total.items()}
