"""The engine in C for models of PyTorch: their weights are packed in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transduce.inference.engine import Engine, EngineSettings
from transduce.inference.native.engine import NativeEngine
from transduce.inference.native.library import library
from transduce.inference.native.model import NativeModel, PlainConfig, supports
from transduce.model import RewardLM, Transformer, TransformerLM
from transduce.model.weights import weights_of
from transduce.model.word_positions import WordPositionFrontEnd

__all__ = ["make"]


def make(models: Sequence[Any], settings: EngineSettings) -> Engine | None:
    """Make the engine of a model; None without the library, or for what it does not know."""
    model, *others = models
    if others or not isinstance(model, Transformer | TransformerLM) or isinstance(model, RewardLM):
        return None
    if not supports(model.config) or next(model.parameters()).device.type != "cpu" or library() is None:
        return None
    assert isinstance(model.config, PlainConfig)
    weights = {name: weight.contiguous() for name, weight in weights_of(model).items()}
    if any(
        str(weight.dtype) not in ("torch.float32", "torch.bfloat16", "torch.float16") for weight in weights.values()
    ):
        return None
    tensors = {
        name: (weight.data_ptr(), tuple(weight.shape), str(weight.dtype).removeprefix("torch."))
        for name, weight in weights.items()
    }
    sides = (model.source, model.target) if isinstance(model, Transformer) else ()
    front_ends = [each for each in sides if isinstance(each, WordPositionFrontEnd)]
    begins_word = [each.begins_word_V.numpy().astype(np.uint8) for each in front_ends]
    return NativeEngine(
        NativeModel(model.config, tensors, settings.precision, begins_word=begins_word), settings, kept=weights
    )
