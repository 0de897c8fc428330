"""Which checkpoints of a run are averaged and kept, and their average. Section 6.1.

The last n are those of the schedule and of the end. Around a checkpoint are at most n of the same that follow each
other: with it, up to (n - 1) // 2 after it, the others before it. So the last ones are those around the last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise, takewhile
from pathlib import Path

from torch import Tensor

from transduce.errors import CheckpointError
from transduce.files import remove, verified_except
from transduce.model.weights_file import finite_tensors
from transduce.training.checkpoint import MODEL_FILE, TrainState, checkpoint_folders, read_state, require_no_link

__all__ = ["average_weights", "averaged_checkpoints", "best_update", "checkpoints_around", "remove_old_checkpoints"]

Checkpoint = tuple[Path, TrainState]


def remove_old_checkpoints(
    folder: Path, *, keep: int, best_update: int | None, n_around: int = 1, interval: int = 1
) -> None:
    """Remove all checkpoints but the newest, the newest ``keep`` that may be averaged, and ``n_around`` the best.

    ``interval``: see ``checkpoints_around``. Also removes leftovers of killed processes. Unreadable checkpoints stay.
    """
    for leftover in folder.glob(".update-*"):
        if re.fullmatch(r"\.update-\d{8,}(\.\d+\.tmp|(\.\d+)?\.old)", leftover.name):
            remove(leftover)
    checkpoints: list[Checkpoint] = []
    for path in checkpoint_folders(folder):
        with suppress(CheckpointError):
            require_no_link(path)
            checkpoints.append((path, read_state(path)))
    retained = {*_scheduled(checkpoints)[-keep:], *(path for path, _ in checkpoints[-1:])}
    if best_update is not None:
        retained |= {*_around(checkpoints, best_update, n=n_around, interval=interval)}
    for path, _ in checkpoints:
        if path not in retained:
            hidden = path.rename(path.with_name(f".{path.name}.old"))  # no reader sees it half removed
            remove(hidden)  # leftovers are removed the next time


def averaged_checkpoints(folder: Path, last: int) -> list[Path]:
    """Return the newest ``last`` checkpoints to average (section 6.1), oldest first: ``schedule`` and ``end`` ones.

    ``best`` and ``stop`` checkpoints do not count. Raises CheckpointError if the state of any is unreadable, since
    leaving one out would silently give another model.
    """
    return _scheduled(_all_checkpoints(folder))[-last:]


def best_update(folder: Path) -> int | None:
    """Return the update of the best validation so far, by the newest checkpoint; None if there was no validation.

    Raises CheckpointError if there is no checkpoint, or as ``averaged_checkpoints`` does.
    """
    checkpoints = _all_checkpoints(folder)
    if not checkpoints:
        raise CheckpointError(f"{folder} has no checkpoint; train first")
    return checkpoints[-1][1].best_update


def checkpoints_around(folder: Path, update: int, n: int, *, interval: int) -> list[Path]:
    """Return the checkpoint of ``update`` and those around it, at most ``n``, oldest first.

    ``interval`` is the number of updates between scheduled checkpoints: where more are missing, some were removed, and
    what is beyond does not follow. Raises CheckpointError if there is no checkpoint of ``update``, or as
    ``averaged_checkpoints`` does.
    """
    checkpoints = _all_checkpoints(folder)
    around = _around(checkpoints, update, n=n, interval=interval)
    if not around:
        known = ", ".join(f"{state.update:,}" for _, state in checkpoints)
        raise CheckpointError(f"{folder} has no checkpoint of update {update:,}; there are those of {known or 'none'}")
    return around


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Average each weight over checkpoints, in float64. Section 6.1.

    Raises CheckpointError if there are none, or if their tensors differ in name.
    """
    if not paths:
        raise CheckpointError("there is no checkpoint to average")
    total: dict[str, Tensor] = {}
    for path in paths:
        with verified_except(path, large=MODEL_FILE, error=CheckpointError).verified_while_read():
            weights = finite_tensors(path / MODEL_FILE)
        if total and weights.keys() != total.keys():
            raise CheckpointError(f"{path} holds other tensors than {paths[0]}; average checkpoints of one run")
        for name, weight in weights.items():
            total[name] = total[name] + weight.double() if name in total else weight.double()
    return {name: (weight / len(paths)).float() for name, weight in total.items()}


def _all_checkpoints(folder: Path) -> list[Checkpoint]:
    paths = checkpoint_folders(folder)
    for path in paths:
        require_no_link(path)
    return [(path, read_state(path)) for path in paths]


def _scheduled(checkpoints: Sequence[Checkpoint]) -> list[Path]:
    """The checkpoints that count in an average: those of the schedule, and the newest if a run ended with it."""
    newest = [path for path, _ in checkpoints[-1:]]
    return [
        path for path, state in checkpoints if state.cause == "schedule" or (state.cause == "end" and path in newest)
    ]


def _around(checkpoints: Sequence[Checkpoint], update: int, *, n: int, interval: int) -> list[Path]:
    """The checkpoint of ``update`` and those around it; none if there is no such checkpoint."""
    scheduled = set(_scheduled(checkpoints))
    counted = [each for each in checkpoints if each[0] in scheduled or each[1].update == update]
    updates = [state.update for _, state in counted]
    if update not in updates:
        return []
    follows = [later - earlier <= interval for earlier, later in pairwise(updates)]
    place = updates.index(update)
    n_after = min(len(list(takewhile(bool, follows[place:]))), (n - 1) // 2)
    n_before = min(len(list(takewhile(bool, reversed(follows[:place])))), n - 1 - n_after)
    return [path for path, _ in counted[place - n_before : place + n_after + 1]]
