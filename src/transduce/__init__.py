"""The system of "Attention Is All You Need": from raw text to a trained Transformer and its translations.

>>> import transduce
>>> "Translator" in transduce.__all__
True

Names other than errors are imported on first use, so ``import transduce`` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from transduce.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    MissingFileError,
    PeerError,
    SearchError,
    ShapeError,
    TrainingError,
    TransduceError,
    TreeError,
)
from transduce.imports import without_collection

if TYPE_CHECKING:
    from transduce.config import ModelConfig, RunConfig, SearchConfig
    from transduce.inference import LanguageModel, Parser, Reader, Transcriber, Translator, load
    from transduce.model import Transformer
    from transduce.runs import train

__all__ = [
    "CheckpointError",
    "ConfigError",
    "DataError",
    "LanguageModel",
    "MissingFileError",
    "ModelConfig",
    "Parser",
    "PeerError",
    "Reader",
    "RunConfig",
    "SearchConfig",
    "SearchError",
    "ShapeError",
    "TrainingError",
    "Transcriber",
    "TransduceError",
    "Transformer",
    "Translator",
    "TreeError",
    "load",
    "train",
]

_LAZY_IMPORTS = {
    "LanguageModel": "transduce.inference",
    "ModelConfig": "transduce.config",
    "Parser": "transduce.inference",
    "Reader": "transduce.inference",
    "RunConfig": "transduce.config",
    "SearchConfig": "transduce.config",
    "Transcriber": "transduce.inference",
    "Transformer": "transduce.model",
    "Translator": "transduce.inference",
    "load": "transduce.inference",
    "train": "transduce.runs",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY_IMPORTS:
        with without_collection():
            module = importlib.import_module(_LAZY_IMPORTS[name])
        return getattr(module, name)
    raise AttributeError(f"module 'transduce' has no attribute {name!r}")
