"""The packed weights of a model, in the library's memory."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Self

from transduce.config import LanguageModelConfig, TransformerConfig
from transduce.errors import ConfigError
from transduce.imports import numpy as np
from transduce.inference.native import binding as native

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from transduce.inference.native.front_end import MediaFrontEnd

__all__ = ["TYPES", "NativeModel", "PlainConfig", "WeightsInMemory", "reads_media", "reason_against_config"]

ACTIVATIONS = ("", "relu", "gelu", "gelu-tanh", "swish")
PRECISIONS = ("fp32", "bf16", "int8")
TYPES = ("float32", "bfloat16", "float16")

PlainConfig = TransformerConfig | LanguageModelConfig

# Settings of an architecture of which some values are computed.
KNOWN_VALUES: dict[str, tuple[object, ...]] = {
    "compatibility": ("scaled",), "attention": ("full",), "n_experts": (1,), "block_size": (1,), "is_causal": (True,),
    "decoder": ("causal",), "output": ("tokens", "tokens-and-value"), "norm": ("post", "pre"),
    "positions": ("sinusoidal", "learned", "words"), "activation": ACTIVATIONS[1:],
    "source": ("tokens", "patches", "frames"),
}  # fmt: skip
# Those of which every value is, or does not matter. Any other setting must have its default.
KNOWN = frozenset(
    "system d_model d_ff d_k d_v n_heads n_layers n_encoder_layers n_decoder_layers vocab_size src_vocab_size"
    " tgt_vocab_size embeddings tied_embeddings scale_embeddings attention_bias output_bias norm_eps n_positions"
    " source_width patch_height patch_width neighbourhood n_active_experts p_drop p_drop_attention p_drop_relu".split()
)

# By names on disk: the address, the shape and the type of each tensor.
WeightsInMemory = Mapping[str, tuple[int, tuple[int, ...], str]]


def reads_media(config: PlainConfig) -> bool:
    """Return whether the source is an image or a recording."""
    return isinstance(config, TransformerConfig) and config.source != "tokens"


def reason_against_config(config: object) -> str | None:
    """Return why the engine does not know an architecture; None if it does."""
    if not isinstance(config, TransformerConfig | LanguageModelConfig):
        return "it is no Transformer"
    names = []
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if name not in KNOWN and value not in KNOWN_VALUES.get(name, (field.default,)):
            names.append(f"{name} = {value!r}")
    return f"it does not know {' and '.join(names)}" if names else None


class NativeModel:
    """The packed weights of a model. Threads share it."""

    def __init__(
        self,
        config: PlainConfig,
        tensors: WeightsInMemory,
        precision: str,
        *,
        begins_word: Sequence[NDArray[np.uint8]] = (),
    ) -> None:
        """``tensors`` are copied.

        ``begins_word``: with word positions, which source ids and which target ids begin a word.

        Raises ConfigError if the library finds fault with them.
        """
        self._library, self.config = native.library(), config
        self.front_end: MediaFrontEnd | None = None
        if reads_media(config):
            from transduce.inference.native.front_end import MediaFrontEnd

            assert isinstance(config, TransformerConfig)
            front = {name: as_floats(*of) for name, of in tensors.items() if name.startswith("source.")}
            self.front_end = MediaFrontEnd(config, front)
        rows = (native.Tensor * len(tensors))(*[
            native.Tensor(name.encode(), at, shape[0], shape[1] if len(shape) > 1 else 1, TYPES.index(kind))
            for name, (at, shape, kind) in tensors.items()
        ])  # fmt: skip
        described, error = _described(config, begins_word), ctypes.create_string_buffer(300)
        self.handle = self._library.td_load(
            ctypes.byref(described), rows, len(rows), PRECISIONS.index(precision), error, len(error)
        )
        if not self.handle:
            raise ConfigError(f"the native engine cannot use the model: {error.value.decode()}")

    @classmethod
    def mapped(
        cls, config: PlainConfig, path: Path, key: str, precision: str, *, begins_word: Sequence[NDArray[np.uint8]] = ()
    ) -> Self | None:
        """Return the model that ``save`` wrote; None if there is none, or one that is damaged or of something else."""
        model = cls.__new__(cls)
        model._library, model.config, model.front_end = native.library(), config, None
        described, error = _described(config, begins_word), ctypes.create_string_buffer(300)
        model.handle = model._library.td_map(
            ctypes.byref(described), PRECISIONS.index(precision), os.fsencode(path), key.encode(), error, len(error)
        )
        return model if model.handle else None

    def save(self, path: Path, key: str) -> None:
        """Write the packed weights to a file. ``key`` says what they were made of. Raises OSError if that fails."""
        error = ctypes.create_string_buffer(300)
        if self._library.td_save(self.handle, os.fsencode(path), key.encode(), error, len(error)):
            raise OSError(error.value.decode())

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._library.td_free(self.handle)


def as_floats(at: int, shape: tuple[int, ...], kind: str) -> NDArray[np.float32]:
    """Return a copy of a tensor."""
    content = ctypes.string_at(at, prod(shape) * (4 if kind == "float32" else 2))
    if kind == "bfloat16":
        return (np.frombuffer(content, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return np.frombuffer(content, kind).reshape(shape).astype(np.float32)


def _described(config: PlainConfig, begins_word: Sequence[NDArray[np.uint8]]) -> native.Config:
    is_lm = isinstance(config, LanguageModelConfig)
    n_encoder_layers, n_decoder_layers = (0, config.layer_counts[0]) if is_lm else config.layer_counts
    src_vocab_size, tgt_vocab_size = config.vocab_sizes
    return native.Config(
        config.d_model, config.d_ff, config.n_heads, config.d_k, config.d_v, n_encoder_layers, n_decoder_layers,
        0 if reads_media(config) else src_vocab_size, tgt_vocab_size, config.norm == "pre",
        ACTIVATIONS.index(config.activation),
        config.n_positions if config.positions == "learned" else 0, config.norm_eps,
        config.d_model**0.5 if config.scale_embeddings else 1.0,
        *(native.address(each, np.uint8) for each in begins_word),
    )  # fmt: skip
