"""Presets: the paper's models, two small ones, two with a shallow decoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from transduce.config import RunConfig, TrainingConfig, TransformerConfig, nearest_name
from transduce.errors import ConfigError, quoted

__all__ = ["PRESETS", "TABLE_3", "base", "big", "deep_shallow", "preset", "small", "small_deep_shallow", "tiny"]


def base() -> RunConfig:
    """The base model: first row of Table 3, 100,000 updates, the last 5 checkpoints averaged."""
    return RunConfig()


def big() -> RunConfig:
    """The big model: last row of Table 3, P_drop 0.3, 300,000 updates, the last 20 checkpoints averaged."""
    return RunConfig(
        model=TransformerConfig(d_model=1024, d_ff=4096, n_heads=16, p_drop=0.3),
        training=TrainingConfig(max_updates=300_000, keep_checkpoints=20, average_last=20),
    )


def small() -> RunConfig:
    """3 + 3 layers, d_model 256: for a laptop, or corpora of a few hundred thousand pairs."""
    return RunConfig(
        model=TransformerConfig(n_encoder_layers=3, n_decoder_layers=3, d_model=256, d_ff=1024, n_heads=4),
        training=TrainingConfig(max_updates=20_000, max_tokens_per_batch=4000, warmup_steps=2000),
    )


def deep_shallow() -> RunConfig:
    """12 + 1 layers of the base model: as many weights, but each token takes few operations. Kasai et al. (2021).

    Such a model is trained on a teacher's translations (``transduce distil``).
    """
    return _varied(model={"n_encoder_layers": 12, "n_decoder_layers": 1})


def small_deep_shallow() -> RunConfig:
    """6 + 1 layers of the small model, see ``deep_shallow``."""
    config = small()
    layers = {"n_encoder_layers": 6, "n_decoder_layers": 1}
    return config.model_copy(update={"model": config.model.model_copy(update=layers)})


def tiny() -> RunConfig:
    """4 + 4 layers, d_model 128, dropout 0.3: for corpora of tens of thousands of pairs."""
    return RunConfig(
        model=TransformerConfig(
            n_encoder_layers=4, n_decoder_layers=4, d_model=128, d_ff=256, n_heads=4, d_k=32, d_v=32, p_drop=0.3
        ),
        training=TrainingConfig(max_updates=10_000, max_tokens_per_batch=4000, warmup_steps=2000),
    )


def _varied(*, model: Mapping[str, Any] | None = None, training: Mapping[str, Any] | None = None) -> RunConfig:
    """Return the base model with some fields changed."""
    return RunConfig(model=TransformerConfig(**(model or {})), training=TrainingConfig(**(training or {})))


# Every row of Table 3, in the paper's order.
TABLE_3: dict[str, Callable[[], RunConfig]] = {
    "base": base,
    "A-h1": lambda: _varied(model={"n_heads": 1, "d_k": 512, "d_v": 512}),
    "A-h4": lambda: _varied(model={"n_heads": 4, "d_k": 128, "d_v": 128}),
    "A-h16": lambda: _varied(model={"n_heads": 16, "d_k": 32, "d_v": 32}),
    "A-h32": lambda: _varied(model={"n_heads": 32, "d_k": 16, "d_v": 16}),
    "B-dk16": lambda: _varied(model={"d_k": 16}),
    "B-dk32": lambda: _varied(model={"d_k": 32}),
    "C-N2": lambda: _varied(model={"n_encoder_layers": 2, "n_decoder_layers": 2}),
    "C-N4": lambda: _varied(model={"n_encoder_layers": 4, "n_decoder_layers": 4}),
    "C-N8": lambda: _varied(model={"n_encoder_layers": 8, "n_decoder_layers": 8}),
    "C-d256": lambda: _varied(model={"d_model": 256, "d_k": 32, "d_v": 32}),
    "C-d1024": lambda: _varied(model={"d_model": 1024, "d_k": 128, "d_v": 128}),
    "C-ff1024": lambda: _varied(model={"d_ff": 1024}),
    "C-ff4096": lambda: _varied(model={"d_ff": 4096}),
    "D-drop0": lambda: _varied(model={"p_drop": 0.0}),
    "D-drop2": lambda: _varied(model={"p_drop": 0.2}),
    "D-smooth0": lambda: _varied(training={"eps_ls": 0.0}),
    "D-smooth2": lambda: _varied(training={"eps_ls": 0.2}),
    "E-learned": lambda: _varied(model={"positions": "learned"}),
    "big": big,
}

PRESETS: dict[str, Callable[[], RunConfig]] = {
    **TABLE_3,
    "small": small,
    "tiny": tiny,
    "deep-shallow": deep_shallow,
    "small-deep-shallow": small_deep_shallow,
}


def preset(name: str) -> RunConfig:
    """Return a preset by name. Raises ConfigError, with the closest known name, for an unknown one.

    >>> preset("tiny").model.d_model
    128
    """
    if name not in PRESETS:
        raise ConfigError(f"unknown preset {quoted(name)}; {nearest_name(name, PRESETS)}")
    return PRESETS[name]()
