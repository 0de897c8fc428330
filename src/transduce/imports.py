"""Imports of many modules, and reading of many objects, at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_collection"]


@contextmanager
def without_collection() -> Iterator[None]:
    """A context in which Python does not search for garbage, for code that makes many objects and keeps them.

    Modules stay until the end of the process, and a vocabulary as long as its model. Searching through all of them
    again and again takes a fifth of the time of importing torch.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()
