"""Every error that transduce raises on purpose.

    TransduceError
    |-- ConfigError       a recipe, preset or setting that cannot be used
    |-- DataError         text, a corpus or a token store that is wrong
    |-- CheckpointError   a checkpoint or model folder that is missing, corrupt or does not fit
    |-- ShapeError        tensors whose shapes or masks cannot be right
    |-- TreeError         a bracketed tree that cannot be read
    |-- SearchError       a model whose probabilities cannot be searched
    |-- TrainingError     a run that must not go on (a loss that is not finite, a folder that is taken)

A message is one line: what, where, what was got, what would work. The command line prints it and exits with 1.
"""

from __future__ import annotations

__all__ = [
    "CheckpointError",
    "ConfigError",
    "DataError",
    "SearchError",
    "ShapeError",
    "TrainingError",
    "TransduceError",
    "TreeError",
]


class TransduceError(Exception):
    """Base of all errors raised on purpose by transduce."""


class ConfigError(TransduceError):
    """A recipe, preset or setting cannot be used."""


class DataError(TransduceError):
    """Text, a corpus or a token store is wrong."""


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
