"""The library that ``native/build.py`` compiles: found, if it is there, and of this version of its interface."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "native_library"]

ABI = 5  # TD_ABI of transduce.h
NAMES = ("libtransduce.so", "libtransduce.dylib", "transduce.dll")
FOLDER = Path(__file__).parent / "inference" / "native"  # where build.py puts it


@cache
def native_library() -> Any:
    """Return the library; None if there is none, or one of another version of the interface."""
    named = os.environ.get("TRANSDUCE_LIBRARY")
    for path in [Path(named)] if named else [FOLDER / name for name in NAMES]:
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        if library.td_abi() == ABI:
            return library
    return None
