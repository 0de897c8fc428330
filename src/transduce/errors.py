"""Every error that transduce raises on purpose.

    TransduceError
    |-- ConfigError       a recipe, preset or setting that cannot be used
    |-- DataError         text, a corpus or a token store that is wrong
        |-- MissingFileError  ... because a file of text is not there
    |-- CheckpointError   a checkpoint or model folder that is missing, corrupt or does not fit
    |-- ShapeError        tensors whose shapes or masks cannot be right
    |-- TreeError         a bracketed tree that cannot be read
    |-- SearchError       a model whose probabilities cannot be searched
    |-- TrainingError     a run that must not go on (a loss that is not finite, a folder that is taken)
        |-- PeerError    ... because another of its processes has ended

A message is one line: what, where, what was got, what would work. The command line prints it and exits with 1.
"""

from __future__ import annotations

import errno
import os
import reprlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "CheckpointError",
    "ConfigError",
    "DataError",
    "MissingFileError",
    "PeerError",
    "SearchError",
    "ShapeError",
    "TrainingError",
    "TransduceError",
    "TreeError",
    "quoted",
    "shown",
]

_BRIEF = reprlib.Repr()  # its other limits, of elements and of levels, are good as they are
_BRIEF.maxstring = _BRIEF.maxother = 200


def quoted(value: object) -> str:
    """``repr(value)`` on one line and of some hundred characters at most, however long or deep the value is.

    >>> print(quoted("two\\nlines"), quoted({"n": [[[[[[[[]]]]]]]]}))
    'two\\nlines' {'n': [[[[[...]]]]]}
    """
    try:
        return _BRIEF.repr(value)
    except ValueError:  # Python does not write a number of thousands of digits
        return f"{type(value).__name__} of thousands of digits"


def shown(name: object) -> str:
    """A name that came out of a file, as it may stand in a message: as it is, or ``quoted`` where that is odd.

    >>> print(shown("d_model"), shown("two\\nlines"))
    d_model 'two\\nlines'
    """
    is_plain = isinstance(name, str) and 0 < len(name) <= _BRIEF.maxstring and name.isprintable()
    return str(name) if is_plain else quoted(name)


class TransduceError(Exception):
    """Base of all errors raised on purpose by transduce."""


class ConfigError(TransduceError):
    """A recipe, preset or setting cannot be used."""


class DataError(TransduceError):
    """Text, a corpus or a token store is wrong."""


class MissingFileError(DataError):
    """A file of text is not there: ``path`` is the name that was given, ``where`` tells what it is relative to."""

    def __init__(self, path: Path, *, where: str) -> None:
        self.path = path
        super().__init__(f"{path} cannot be read: {os.strerror(errno.ENOENT)}{f' ({where})' if where else ''}")


class CheckpointError(TransduceError):
    """A checkpoint or a model folder is missing, corrupt or does not fit."""


class SearchError(TransduceError):
    """A model's probabilities cannot be searched: they are not numbers, or all that is allowed has none."""


class ShapeError(TransduceError):
    """Tensors have shapes, or masks, that cannot be right."""


class TreeError(TransduceError):
    """A bracketed tree cannot be read."""


class TrainingError(TransduceError):
    """A training run cannot start or must not go on."""


class PeerError(TrainingError):
    """A run ends because another of its processes has ended, which says why."""
