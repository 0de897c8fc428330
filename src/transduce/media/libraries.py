"""The libraries for images and audio, imported only where they are used, and the files that they are given."""

from __future__ import annotations

import importlib
import stat
from pathlib import Path
from typing import Any

from transduce.errors import ConfigError, DataError, shown

__all__ = ["library", "require_file"]


def library(module: str, *, needed_for: str) -> Any:
    """Import a module of the extra ``media``. Raises ConfigError, with the command that installs it, if it is missing.

    >>> library("no_such_module", needed_for="a picture")
    Traceback (most recent call last):
    transduce.errors.ConfigError: a picture needs no_such_module (No module named 'no_such_module'); ...
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = {"PIL": "Pillow", "sklearn": "scikit-learn"}.get(module.partition(".")[0], module.partition(".")[0])
        raise ConfigError(f"{needed_for} needs {name} ({error}); pip install 'transduce[media]'") from error


def require_file(path: Path) -> None:
    """Raise DataError if a path is no file: libraries would wait for the other end of a pipe."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise DataError(f"{path} cannot be read: there is no such file") from error
    except (OSError, ValueError) as error:  # such as a name that is too long, or has a NUL
        raise DataError(f"{shown(path)} cannot be read: {error}") from error
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise DataError(f"{path} cannot be read: it is {kind}, not a file")
