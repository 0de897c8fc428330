"""The files of a run, and whether they are what they should be.

A run folder::

    run.json    what the run was begun with; each checkpoint has a copy
    metrics.jsonl  tensorboard/
    store/    the prepared text; or prepared_at.json, which says where it lies
    checkpoints/update-00001000/
    not-finite/    batches that were left out, or ended the run
    model/     the averaged model folder
    lock.json    while a process writes

Several processes train one run together; the first of them writes. A folder in it may be a link, to a larger disk for
instance; a file may not: nothing is written, or read, through one.
"""

from __future__ import annotations

import os
from pathlib import Path

from transduce.errors import DataError, TrainingError
from transduce.files import is_leftover, read_json, remove, require_regular
from transduce.tasks.preparation import Prepared
from transduce.tasks.run_file import CHECKPOINTS, RUN_FILE, RunSettings, holds_run, require_run
from transduce.tasks.run_lock import LOCK_FILE
from transduce.training import checkpoint_folders

__all__ = [
    "METRICS_FILE", "MODEL", "STORE", "STORE_POINTER", "TENSORBOARD", "require_own_entries", "require_own_folder",
    "require_same_data", "store_of",
]  # fmt: skip

METRICS_FILE, STORE_POINTER = "metrics.jsonl", "prepared_at.json"
STORE, TENSORBOARD, MODEL, NOT_FINITE = "store", "tensorboard", "model", "not-finite"


def require_own_folder(folder: Path) -> None:
    """Raises TrainingError if there is something else in a folder than a run, or what one begins with.

    What a killed process has left of its files is removed.
    """
    begins_with = {STORE, STORE_POINTER, LOCK_FILE}
    strangers = []
    for path in folder.iterdir():
        if any(is_leftover(path, of=name) for name in begins_with | {RUN_FILE, METRICS_FILE}):
            if path.is_symlink() or not path.is_dir():  # folders are removed by who makes them anew
                remove(path)
        elif path.name not in begins_with and not _is_made_beforehand(path):
            strangers.append(path)
    if strangers and not holds_run(folder):
        if checkpoint_folders(folder / CHECKPOINTS):
            require_run(folder)
        raise TrainingError(f"{folder} is not empty and holds no run; name another --out")
    require_own_entries(folder)


def _is_made_beforehand(path: Path) -> bool:
    """Whether somebody has made an empty folder for a run to fill, or a link to one on a larger disk."""
    return path.name in (CHECKPOINTS, TENSORBOARD, MODEL) and path.is_dir() and not any(path.iterdir())


def require_own_entries(folder: Path) -> None:
    """Raises TrainingError if a file of a run folder is none, or a folder none, or a link to somebody else's."""
    for name in (RUN_FILE, METRICS_FILE, STORE_POINTER):
        if os.path.lexists(folder / name):
            require_regular(folder / name, error=TrainingError)
    for name in (STORE, CHECKPOINTS, TENSORBOARD, MODEL, NOT_FINITE):
        path = folder / name
        if os.path.lexists(path) and not path.is_dir():
            what = "a link to no folder" if path.is_symlink() else "no folder"
            raise TrainingError(f"{path} is {what}, and a run has a folder there; move it away")
        is_written = name != STORE and os.path.lexists(path)
        if is_written and path.is_symlink() and not _is_own(path):
            raise TrainingError(f"{path} leads to the folder of another user, {path.resolve()}; move it away")


def _is_own(path: Path) -> bool:
    """Whether a folder is of who runs this; the administrator may have any."""
    return not hasattr(os, "geteuid") or os.geteuid() in (0, path.stat().st_uid)


def store_of(folder: Path) -> Path:
    """Where the prepared text of a run lies: inside it, or where ``prepared_at.json`` points."""
    pointer = folder / STORE_POINTER
    if not os.path.lexists(pointer):
        return folder / STORE
    place = read_json(pointer).get("folder")
    if not isinstance(place, str):
        raise DataError(f"{pointer} should name the folder of the prepared text; name it anew with --store")
    return Path(place)


def require_same_data(folder: Path, begun: RunSettings, prepared: Prepared) -> None:
    """Raises DataError if a run was begun on other ids than those in ``prepared``."""
    if begun.data_fingerprint != prepared.fingerprint:
        raise DataError(
            f"{prepared.folder} is not what the run in {folder} was begun with: its fingerprint is "
            f"{prepared.fingerprint[:12]}, it was {begun.data_fingerprint[:12]}; give the folder of then, or begin a "
            "new run"
        )
