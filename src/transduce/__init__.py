"""The system of "Attention Is All You Need": from raw text to a trained Transformer and its translations.

>>> import transduce
>>> "Translator" in transduce.__all__
True

Names other than errors are imported on first use, so ``import transduce`` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.config import ModelConfig, RunConfig, SearchConfig
    from transduce.inference import LanguageModel, Parser, Reader, Transcriber, Translator, load
    from transduce.model import Transformer
    from transduce.runs import train

__all__ = [
    "CheckpointError", "ConfigError", "DataError", "LanguageModel", "MissingFileError", "ModelConfig", "Parser",
    "PeerError", "Reader", "RunConfig", "SearchConfig", "SearchError", "ShapeError", "TrainingError", "Transcriber",
    "TransduceError", "Transformer", "Translator", "TreeError", "load", "train",
]  # fmt: skip

__version__ = "0.1.0"  # read from here by the build, too

imported_on_use(__name__)
