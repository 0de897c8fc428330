"""The layout of a run folder, and checks of its entries.

A run folder::

    run.json    run settings; each checkpoint has a copy
    metrics.jsonl  tensorboard/
    store/    the prepared text; or prepared_at.json, the path of another prepared folder
    checkpoints/update-00001000/
    not-finite/    dumps of batches with a non-finite loss or gradient
    model/     the averaged model folder
    lock.json    while a process writes

With several processes, only rank 0 writes. Subfolders may be links, for example to a larger disk; files may not.
"""

from __future__ import annotations

import os
from pathlib import Path

from transduce.errors import DataError, TrainingError
from transduce.files import is_leftover, read_json, remove, require_regular
from transduce.runs.run_file import (
    CHECKPOINTS,
    FIRST_ENTRIES,
    MODEL,
    RUN_FILE,
    STORE,
    STORE_POINTER,
    RunSettings,
    holds_run,
    require_run,
)
from transduce.tasks.prepared import Prepared
from transduce.training import checkpoint_folders
from transduce.training.nonfinite_dump import NOT_FINITE

__all__ = [
    "METRICS_FILE", "MODEL", "STORE", "STORE_POINTER", "TENSORBOARD", "require_own_entries", "require_own_folder",
    "require_same_data", "store_of",
]  # fmt: skip

METRICS_FILE, TENSORBOARD = "metrics.jsonl", "tensorboard"


def require_own_folder(folder: Path) -> None:
    """Raise TrainingError unless a folder is empty or holds a run, or the first files of one.

    Removes leftover files of killed processes.
    """
    has_foreign_entry = False
    for path in folder.iterdir():
        if any(is_leftover(path, of=name) for name in FIRST_ENTRIES | {RUN_FILE, METRICS_FILE}):
            if path.is_symlink() or not path.is_dir():  # leftover folders are removed when they are written again
                remove(path)
        elif path.name not in FIRST_ENTRIES and not _is_empty_run_subfolder(path):
            has_foreign_entry = True
    if has_foreign_entry and not holds_run(folder):
        if checkpoint_folders(folder / CHECKPOINTS):
            require_run(folder)
        raise TrainingError(f"{folder} is not empty and holds no run; name another --out")
    require_own_entries(folder)


def _is_empty_run_subfolder(path: Path) -> bool:
    """Whether a path is an empty subfolder for a run, or a link to one, that the user created in advance."""
    return path.name in (CHECKPOINTS, TENSORBOARD, MODEL) and path.is_dir() and not any(path.iterdir())


def require_own_entries(folder: Path) -> None:
    """Raise TrainingError if an entry is not the file or folder expected, or links to another user's folder."""
    for name in (RUN_FILE, METRICS_FILE, STORE_POINTER):
        if os.path.lexists(folder / name):
            require_regular(folder / name, error=TrainingError)
    for name in (STORE, CHECKPOINTS, TENSORBOARD, MODEL, NOT_FINITE):
        path = folder / name
        if os.path.lexists(path) and not path.is_dir():
            what = "a link, but not to a folder" if path.is_symlink() else "not a folder"
            raise TrainingError(f"{path} is {what}; a run needs a folder there; move it away")
        is_written_to = name != STORE and os.path.lexists(path)
        if is_written_to and path.is_symlink() and not _is_own(path):
            raise TrainingError(f"{path} links to another user's folder, {path.resolve()}; move it away")


def _is_own(path: Path) -> bool:
    """Whether a folder belongs to the current user, or the current user is root."""
    return not hasattr(os, "geteuid") or os.geteuid() in (0, path.stat().st_uid)


def store_of(folder: Path) -> Path:
    """Return the prepared folder of a run: ``store/``, or the path in ``prepared_at.json``."""
    pointer = folder / STORE_POINTER
    if not os.path.lexists(pointer):
        return folder / STORE
    store = read_json(pointer).get("folder")
    if not isinstance(store, str):
        raise DataError(f"{pointer} should name the folder of the prepared text; name it again with --store")
    return Path(store)


def require_same_data(folder: Path, settings: RunSettings, prepared: Prepared) -> None:
    """Raise DataError if a run was started on other tokenizers or ids than those in ``prepared``."""
    if settings.data_fingerprint != prepared.fingerprint:
        raise DataError(
            f"{prepared.folder} is not the text of the run in {folder}: its fingerprint is "
            f"{prepared.fingerprint[:12]}, should be {settings.data_fingerprint[:12]}; use the original folder, or "
            "start a new run"
        )
