"""Packed weights in the user's cache folder: a large model that was used before is mapped, and not packed again.

A file is named after the checksum of the weights, and checked when it is mapped, so that one which is damaged, or of
another version, is written again. Where the folder cannot be written to, or is unknown, models are packed each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.files import UnverifiedFile, remove_leftovers
from transduce.files.writing import replacement
from transduce.imports import numpy as np
from transduce.inference.native.model import NativeModel, PlainConfig

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["packed_once"]

MIN_BYTES = 8_000_000  # of weights: fewer are packed in a few milliseconds
N_KEPT = 8  # files, the last ones written
ENDING = ".packed"
KEY = "of verified weights: {}"  # files with the checksum alone may have been made of damaged weights


def packed_once(
    config: PlainConfig,
    precision: str,
    weights: UnverifiedFile,
    *,
    begins_word: list[NDArray[np.uint8]],
    pack: Callable[[], NativeModel],
) -> NativeModel:
    """Return a model from its file in the cache, else ``pack`` it and write the file.

    ``weights``: their file, whose entry in the manifest has the size and the checksum. It is verified before a file is
    written: one that was made of damaged weights would be believed when they are whole again.
    """
    sha256 = str(weights.entry.get("sha256"))
    folder = cache_folder()
    if folder is None or weights.entry["bytes"] < MIN_BYTES or not sha256.isalnum():
        with weights.verified_while_read():
            return pack()
    path, key = folder / f"{sha256[:32]}-{precision}{ENDING}", KEY.format(sha256)
    with weights.verified_while_read():
        found = NativeModel.mapped(config, path, key, precision, begins_word=begins_word)
        model = found or pack()
    if found is None:
        _save(model, path, key)
    return model


def _save(model: NativeModel, path: Path, key: str) -> None:
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)  # of a process that was killed
        with replacement(path) as stream:
            model.save(Path(stream.name), key)
        _remove_old(path.parent)


def cache_folder() -> Path | None:
    """Return the folder of packed weights, within the user's cache folder; None for a user without a home folder."""
    base = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    try:
        return Path(base or Path.home() / ".cache") / "transduce" / "packed"
    except RuntimeError:  # no HOME, and a user whom the system does not know
        return None


def _remove_old(folder: Path) -> None:
    files = sorted(folder.glob(f"*{ENDING}"), key=lambda path: path.stat().st_mtime)
    for path in files[:-N_KEPT]:
        path.unlink(missing_ok=True)
