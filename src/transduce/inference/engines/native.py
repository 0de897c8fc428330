"""The engine in C: its weights are packed from where they lie, in a file or in PyTorch's memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from transduce.imports import numpy as np
from transduce.inference.engine import Engine, EngineSettings
from transduce.inference.engines import torch
from transduce.inference.mapped_weights import MappedTensor
from transduce.inference.native.binding import library
from transduce.inference.native.engine import NativeEngine
from transduce.inference.native.model import (
    TYPES,
    NativeModel,
    PlainConfig,
    WeightsInMemory,
    reads_media,
    reason_against_config,
)
from transduce.inference.native.packed_files import packed_once
from transduce.inference.stored_model import StoredModel
from transduce.model.weight_shapes import require_shapes, weight_shapes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["make", "packed", "reason_against"]


def make(models: Sequence[Any], settings: EngineSettings) -> Engine | None:
    """Make the engine of a model; None without the library, or for what it does not know.

    With ``auto``, PyTorch's runs the searches that have settings unknown to it.
    """
    if reason_against(models) is not None:
        return None
    [model] = models
    instead = partial(torch.make, models, settings) if settings.engine == "auto" else None
    if not isinstance(model, StoredModel):
        return NativeEngine(packed(model, settings.precision), settings, instead)
    assert isinstance(model.config, PlainConfig)
    if reads_media(model.config):
        with model.weights_file.verified_while_read():
            return NativeEngine(packed(model, settings.precision), settings, instead)
    made = packed_once(
        model.config, settings.precision, model.weights_file, begins_word=_begins_word(model),
        pack=lambda: packed(model, settings.precision),
    )  # fmt: skip
    return NativeEngine(made, settings, instead)


def packed(model: Any, precision: str) -> NativeModel:
    """Return the packed weights of a model; the caller verifies the file of one that is stored."""
    weights, _kept = _weights_of(model)
    return NativeModel(model.config, weights, precision, begins_word=_begins_word(model))


def reason_against(models: Sequence[Any]) -> str | None:
    """Return why the engine does not support a model; None if it does."""
    if library() is None:
        return (
            "the engine in C was not compiled, or is of another version; install transduce again where there is a C "
            "compiler"
        )
    if len(models) != 1:
        return "an ensemble needs PyTorch"
    [model] = models
    if (reason := reason_against_config(getattr(model, "config", None))) is not None:
        return reason
    if isinstance(model, StoredModel):
        return None if model.device == "cpu" else f"the model is on {model.device}"
    weight = next(model.parameters())
    if weight.device.type != "cpu":
        return f"the model is on {weight.device}"
    dtypes = {str(each.dtype).removeprefix("torch.") for each in model.parameters()}
    return None if dtypes <= {*TYPES} else f"it has no weights in {', '.join(sorted(dtypes - {*TYPES}))}"


def _weights_of(model: Any) -> tuple[WeightsInMemory, object]:
    """Return the weights of a model, and what keeps them in memory. Raises CheckpointError for a damaged file."""
    if isinstance(model, StoredModel):
        assert isinstance(model.config, PlainConfig)
        mapped = model.mapped_weights()
        shapes = {name: tensor.values.shape for name, tensor in mapped.items()}
        require_shapes(shapes, weight_shapes(model.config), where=model.weights_file.path)
        for name, each in mapped.items():
            if each.dtype not in TYPES:
                mapped[name] = MappedTensor("float32", each.values.astype(np.float32))
        return {name: (each.values.ctypes.data, shapes[name], each.dtype) for name, each in mapped.items()}, mapped
    from transduce.model.weights import weights_of

    weights = {name: weight.contiguous() for name, weight in weights_of(model).items()}
    in_memory = {
        name: (weight.data_ptr(), tuple(weight.shape), str(weight.dtype).removeprefix("torch."))
        for name, weight in weights.items()
    }
    return in_memory, weights


def _begins_word(model: Any) -> list[NDArray[np.uint8]]:
    """Return which source ids and which target ids begin a word, (V,) each; none without word positions."""
    if model.config.positions != "words":
        return []
    if not isinstance(model, StoredModel):
        return [each.begins_word_V.numpy().astype(np.uint8) for each in (model.source, model.target)]
    begins_word = [np.zeros(size, np.uint8) for size in model.config.vocab_sizes]
    for flags_V, tokenizer in zip(begins_word, (model.tokenizers.src, model.tokenizers.tgt), strict=True):
        flags_V[list(tokenizer.word_start_ids)] = 1
    return begins_word
