"""The libraries for images and audio, imported only where they are used, and the files that they are given."""

from __future__ import annotations

import stat
from functools import partial
from pathlib import Path

from transduce import imports
from transduce.errors import DataError, shown

__all__ = ["library", "require_file"]

library = partial(imports.library, extra="media")


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
