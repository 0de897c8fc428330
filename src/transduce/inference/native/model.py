"""The packed weights of a model, in the library's memory."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from transduce.config import LanguageModelConfig, TransformerConfig
from transduce.errors import ConfigError
from transduce.inference.native import library as native

__all__ = ["NativeModel", "PlainConfig", "supports"]

ACTIVATIONS = ("", "relu", "gelu", "gelu-tanh", "swish")
PRECISIONS = ("fp32", "bf16", "int8")
TYPES = ("float32", "bfloat16", "float16")

PlainConfig = TransformerConfig | LanguageModelConfig


def supports(config: object) -> bool:
    """Whether the engine knows an architecture."""
    if not isinstance(config, TransformerConfig | LanguageModelConfig):
        return False
    is_plain = config.compatibility == "scaled" and config.attention == "full" and config.n_experts == 1
    if isinstance(config, LanguageModelConfig):
        return is_plain and config.is_causal and config.output != "scalar"
    is_token_model = config.source == "tokens"
    return is_plain and is_token_model and config.decoder == "causal" and config.block_size == 1


class NativeModel:
    """The packed weights of a model. Threads share it."""

    def __init__(
        self,
        config: PlainConfig,
        tensors: Mapping[str, tuple[int, tuple[int, ...], str]],
        precision: str,
        *,
        begins_word: Sequence[NDArray[np.uint8]] = (),
    ) -> None:
        """``tensors``: the address, shape and type of each, by its name in files; they stay where they are.

        ``begins_word``: with word positions, which source ids and which target ids begin a word.

        Raises ConfigError if the library finds fault with them.
        """
        self._library = native.library()
        self.config = config
        is_lm = isinstance(config, LanguageModelConfig)
        n_encoder_layers, n_decoder_layers = (0, config.layer_counts[0]) if is_lm else config.layer_counts
        described = native.Config(
            config.d_model, config.d_ff, config.n_heads, config.d_k, config.d_v, n_encoder_layers, n_decoder_layers,
            *config.vocab_sizes, config.norm == "pre", ACTIVATIONS.index(config.activation),
            config.n_positions if config.positions == "learned" else 0, config.norm_eps,
            config.d_model**0.5 if config.scale_embeddings else 1.0,
            *(native.address(each, np.uint8) for each in begins_word),
        )  # fmt: skip
        rows = (native.Tensor * len(tensors))(*[
            native.Tensor(name.encode(), at, shape[0], shape[1] if len(shape) > 1 else 1, TYPES.index(kind))
            for name, (at, shape, kind) in tensors.items()
        ])  # fmt: skip
        error = ctypes.create_string_buffer(300)
        self.handle = self._library.td_load(
            ctypes.byref(described), rows, len(rows), PRECISIONS.index(precision), error, len(error)
        )
        if not self.handle:
            raise ConfigError(f"the native engine cannot use the model: {error.value.decode()}")

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._library.td_free(self.handle)
