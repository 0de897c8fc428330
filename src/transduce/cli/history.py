"""The input history of a prompt, kept between sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from transduce.errors import ConfigError

try:
    import readline
except ImportError:  # not on Windows
    readline = None  # type: ignore[assignment]

__all__ = ["history_file", "line_history"]

MAX_HISTORY_LINES = 1000
MAX_CHARACTERS = 2000  # longer lines were pasted and are not kept


def history_file(name: str) -> Path:
    """Return the history file of a prompt, in the user's cache folder."""
    from transduce.corpora import cache_folder

    return cache_folder() / f"{name}.history"


@contextmanager
def line_history(name: str) -> Iterator[None]:
    """Enable line editing and history for ``input()`` within the block, if readline is available.

    Errors in reading or writing the history are ignored.
    """
    if readline is None:
        yield
        return
    readline.clear_history()
    try:
        path = history_file(name)
    except ConfigError:  # there is no home folder
        yield
        return
    with suppress(OSError, UnicodeError):
        readline.read_history_file(path)
    try:
        yield
    finally:
        with suppress(OSError):
            _write(path)


def _write(path: Path) -> None:
    assert readline is not None
    for index in reversed(range(readline.get_current_history_length())):
        if len(readline.get_history_item(index + 1) or "") > MAX_CHARACTERS:
            readline.remove_history_item(index)
    if not readline.get_current_history_length():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    path.chmod(0o600)
    readline.set_history_length(MAX_HISTORY_LINES)
    readline.write_history_file(path)
