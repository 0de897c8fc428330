"""Every error that transduce raises on purpose.

    TransduceError
    |-- ConfigError       invalid recipe, preset or setting
    |-- DataError         invalid text, corpus or token store
        |-- MissingFileError  a text file does not exist
    |-- CheckpointError   missing, corrupt or incompatible checkpoint or model folder
    |-- ShapeError        inconsistent tensor shapes or masks
    |-- TreeError         malformed bracketed tree
    |-- SearchError       model output that cannot be searched
    |-- TrainingError     a run that must not continue (non-finite loss, locked run folder)
        |-- PeerError     another process of the run has ended

A message is one line: what failed, where, the value, and what would work. The command line prints it and exits with 1.
"""

from __future__ import annotations

import errno
import os
import reprlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "CheckpointError", "ConfigError", "DataError", "MissingFileError", "PeerError", "SearchError", "ShapeError",
    "TrainingError", "TransduceError", "TreeError", "quoted", "shown",
]  # fmt: skip

_BRIEF = reprlib.Repr()  # limits elements and nesting by default
_BRIEF.maxstring = _BRIEF.maxother = 200


def quoted(value: object) -> str:
    """Return ``repr(value)`` on one line, shortened to a few hundred characters.

    >>> print(quoted("two\\nlines"), quoted({"n": [[[[[[[[]]]]]]]]}))
    'two\\nlines' {'n': [[[[[...]]]]]}
    """
    try:
        return _BRIEF.repr(value)
    except ValueError:  # Python refuses to print integers of thousands of digits
        return f"{type(value).__name__} of thousands of digits"


def shown(name: object) -> str:
    """Return a name read from a file for use in a message: unchanged if short and printable, else ``quoted``.

    >>> print(shown("d_model"), shown("two\\nlines"))
    d_model 'two\\nlines'
    """
    is_plain = isinstance(name, str) and 0 < len(name) <= _BRIEF.maxstring and name.isprintable()
    return str(name) if is_plain else quoted(name)


class TransduceError(Exception):
    """Base class of all errors raised on purpose by transduce."""


class ConfigError(TransduceError):
    """A recipe, preset or setting is invalid."""


class DataError(TransduceError):
    """Text, a corpus or a token store is invalid."""


class MissingFileError(DataError):
    """A text file does not exist: ``path`` is the name as given, ``where`` says what it is relative to."""

    path: Path | None = None  # None: the error of a worker process

    def __init__(self, path: Path, *, where: str) -> None:
        self.path = path
        super().__init__(f"{path} cannot be read: {os.strerror(errno.ENOENT)}{f' ({where})' if where else ''}")


class CheckpointError(TransduceError):
    """A checkpoint or model folder is missing, corrupt or incompatible."""


class SearchError(TransduceError):
    """Model output cannot be searched: log-probabilities are NaN, or every allowed token has probability 0."""


class ShapeError(TransduceError):
    """Tensor shapes or masks are inconsistent."""


class TreeError(TransduceError):
    """A bracketed tree is malformed."""


class TrainingError(TransduceError):
    """A training run cannot start or must not continue."""


class PeerError(TrainingError):
    """The run ends because another of its processes has ended; that process reports the reason."""
