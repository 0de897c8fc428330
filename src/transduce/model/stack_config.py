"""The configuration of a stack: its sizes and switches."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, Self

from transduce.config import LanguageModelConfig, TransformerConfig

__all__ = ["LAYER_NORM_EPS", "StackConfig"]

LAYER_NORM_EPS = 1e-6  # the authors' code; the paper gives none


@dataclass(frozen=True, slots=True)
class StackConfig:
    """The columns of Table 3 that concern layers, named as in ``TransformerConfig``."""

    n_layers: int  # N
    d_model: int
    d_ff: int
    n_heads: int
    d_k: int
    d_v: int
    compatibility: Literal["scaled", "dot", "cosine", "additive", "bilinear"] = "scaled"
    attention: Literal["full", "restricted"] = "full"
    neighbourhood: int = 65  # r of restricted attention
    attention_bias: bool = False
    activation: Literal["relu", "gelu", "gelu-tanh", "swish"] = "relu"
    norm_eps: float = LAYER_NORM_EPS
    p_drop: float = 0.1
    p_drop_attention: float = 0.0
    p_drop_relu: float = 0.0
    norm: Literal["post", "pre"] = "post"
    n_experts: int = 1
    n_active_experts: int = 2

    @classmethod
    def from_config(cls, config: TransformerConfig | LanguageModelConfig, n_layers: int) -> Self:
        """The configuration of one stack of a Transformer, or of a language model."""
        shared = {field.name: getattr(config, field.name) for field in fields(cls) if field.name != "n_layers"}
        return cls(n_layers, **shared)
