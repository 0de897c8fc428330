"""Imports of a command."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from transduce.imports import without_collection

__all__ = ["command_imports"]


@contextmanager
def command_imports() -> Iterator[None]:
    """A context for a command's imports: without a search for garbage, which leaves these modules out later, too.

    Only for a process of our own: whatever is garbage at the end of the context stays until the process ends.
    """
    with without_collection():
        try:
            yield
        finally:
            gc.freeze()
