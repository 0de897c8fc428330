"""What other libraries cannot carry: refused by name before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from transduce.config import LanguageModelConfig, ModelConfig, TransformerConfig
from transduce.errors import ConfigError
from transduce.inference.trained_model import Capabilities

__all__ = ["FORMAT_NAMES", "Target", "require_exportable"]

Target = Literal["hf", "ct2", "onnx"]
FORMAT_NAMES: dict[Target, str] = {"hf": "Hugging Face", "ct2": "CTranslate2", "onnx": "ONNX"}


def require_exportable(config: ModelConfig, capabilities: Capabilities, target: Target, *, where: Path) -> None:
    """Raise ConfigError, naming the setting, if the format of ``target`` cannot carry the model in ``where``."""
    reason = next(_reasons(config, capabilities, target), None)
    if reason is not None:
        raise ConfigError(f"{where} cannot be exported to {FORMAT_NAMES[target]}: {reason}")


def _reasons(config: ModelConfig, capabilities: Capabilities, target: Target) -> Iterator[str]:
    if capabilities.exported_as is None:
        yield f"it is {capabilities.what}: {capabilities.why_not_exported}"
    if capabilities.exported_as == "decoder" and target != "hf":
        yield f"it is {capabilities.what}; use --to hf"
    if not isinstance(config, TransformerConfig | LanguageModelConfig):
        yield f"system = {config.system!r}, a baseline of Table 2, has no counterpart there"
        return
    if config.compatibility != "scaled":
        yield f"compatibility = {config.compatibility!r}; only 'scaled' is known there"
    if config.attention != "full":
        yield f"attention = {config.attention!r}; attention there is over all positions"
    if config.n_experts > 1:
        yield f"n_experts = {config.n_experts}; layers there have one feed-forward network"
    if config.positions not in ("sinusoidal", "learned"):
        yield f"positions = {config.positions!r}; positions there are sinusoids or learned, and count tokens, not words"
    if config.d_model % config.n_heads:
        yield f"d_model {config.d_model} is not a multiple of n_heads {config.n_heads}"
    if max(config.d_k, config.d_v) > config.d_model // config.n_heads:
        yield (
            f"heads there have the width d_model / n_heads = {config.d_model // config.n_heads}, these are wider:"
            f" d_k {config.d_k}, d_v {config.d_v}"
        )
