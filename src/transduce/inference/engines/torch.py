"""PyTorch's engine: it supports every model of the package, on CPUs and GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transduce.inference.engine import Engine, EngineSettings
from transduce.inference.stored_model import in_torch

__all__ = ["make", "reason_against"]


def make(models: Sequence[Any], settings: EngineSettings) -> Engine:
    """Make the engine of a model, or of an ensemble. Raises ConfigError as ``make_engine``."""
    from transduce.inference.language_model_engine import LanguageModelEngine
    from transduce.inference.torch_engine import EncoderDecoderEngine
    from transduce.model import EncoderDecoder

    models = list(map(in_torch, models))
    if isinstance(models[0], EncoderDecoder):
        return EncoderDecoderEngine(models, settings)
    return LanguageModelEngine(models[0], settings)


def reason_against(models: Sequence[Any]) -> None:
    """Return None: it supports all."""
