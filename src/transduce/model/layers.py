"""The layer of encoders and decoders: attention, feed-forward, residuals. Sections 3.1 and 3.3, figure 1.

Shapes: B sentences, T query positions, S key positions, N real positions of the batch (see ``padding.py``), Q new query
positions of an incremental step, D d_model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import assert_never

import torch.nn.functional as F
from torch import Tensor, nn

from transduce.model.attention import AttentionBias, AttentionKernel, CrossAttention, SelfAttention, WeightsHook
from transduce.model.decoding import LayerCache
from transduce.model.dropout import Dropout, dropout
from transduce.model.experts import AuxiliaryLosses, MixtureOfExperts
from transduce.model.padding import EncoderOutput, PaddingInfo
from transduce.model.stack_config import StackConfig

__all__ = ["ACTIVATIONS", "FeedForward", "Layer", "Residual"]

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": partial(F.relu, inplace=True),
    "gelu": F.gelu,  # x Phi(x), Hendrycks and Gimpel (2016)
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "swish": F.silu,  # x sigmoid(x), Ramachandran, Zoph and Le (2017)
}


class Residual(nn.Module):
    """The residual connection with dropout and norm: LayerNorm(x + Dropout(Sublayer(x))). Sections 3.1 and 5.4.

    Deviates: with ``norm = "pre"`` it is x + Dropout(Sublayer(LayerNorm(x))), as in the authors' later code;
    ``norm = "post"`` is the paper.
    """

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        self.norm_position = config.norm
        self.norm = nn.LayerNorm(config.d_model, eps=config.norm_eps)
        self.dropout = Dropout(config.p_drop)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sublayer to x, (..., D) to (..., D)."""
        match self.norm_position:
            case "post":
                out: Tensor = self.norm(x + self.dropout(sublayer(x)))
            case "pre":
                out = x + self.dropout(sublayer(self.norm(x)))
            case _:
                assert_never(self.norm_position)
        return out


class FeedForward(nn.Module):
    """The position-wise feed-forward network max(0, x W_1 + b_1) W_2 + b_2. Section 3.3, equation 2.

    Deviates: ``activation`` may replace max(0, ...); "relu" is the paper.
    """

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.d_model, config.d_ff)
        self.w_2 = nn.Linear(config.d_ff, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.p_drop = config.p_drop_relu

    def forward(self, x: Tensor, auxiliary: AuxiliaryLosses | None = None, n_real: int | None = None) -> Tensor:
        """(..., D) to (..., D). The rest is for the mixture of experts, which has an auxiliary loss."""
        out: Tensor = self.w_2(dropout(self.activation(self.w_1(x)), self.p_drop, training=self.training))
        return out


class Layer(nn.Module):
    """Self-attention, cross-attention if ``has_cross_attention``, feed-forward, each with its residual. Section 3.1."""

    def __init__(
        self,
        config: StackConfig,
        *,
        has_cross_attention: bool,
        kernel: AttentionKernel = "auto",
        is_causal: bool = False,
    ) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config, kernel=kernel, is_causal=is_causal)
        self.cross_attention = CrossAttention(config, kernel=kernel) if has_cross_attention else None
        # n_experts = 1 is the paper's: one network for all positions.
        self.feed_forward = FeedForward(config) if config.n_experts == 1 else MixtureOfExperts(config, FeedForward)
        self.self_attention_residual = Residual(config)
        self.cross_attention_residual = Residual(config) if has_cross_attention else None
        self.feed_forward_residual = Residual(config)

    def forward(
        self,
        x_ND: Tensor,
        padding: PaddingInfo,
        *,
        memory: EncoderOutput | None = None,
        self_hook: WeightsHook | None = None,
        cross_hook: WeightsHook | None = None,
        auxiliary: AuxiliaryLosses | None = None,
    ) -> Tensor:
        """All positions at once, (N, D) to (N, D); cross-attention reads the ``memory``."""
        x_ND = self.self_attention_residual(x_ND, lambda x: self.self_attention(x, padding, hook=self_hook))
        attention, residual = self.cross_attention, self.cross_attention_residual
        if attention is not None and residual is not None:
            x_ND = residual(x_ND, partial(attention, padding=padding, memory=memory, hook=cross_hook))
        out_ND: Tensor = self.feed_forward_residual(x_ND, lambda x: self.feed_forward(x, auxiliary, padding.n_real))
        return out_ND

    def cross_keys_values(self, memory_BSD: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Keys and values of the memory for the decoding steps; (None, None) without cross-attention or memory."""
        if self.cross_attention is None or memory_BSD is None:
            return None, None
        return self.cross_attention.keys_values(memory_BSD)

    def extend(
        self, x_BQD: Tensor, cache: LayerCache, *, mask: AttentionBias, n_cached: int, memory_mask: AttentionBias
    ) -> Tensor:
        """One decoding step, (B, Q, D) to (B, Q, D): the new keys and values are appended to the ``cache``."""
        x_BQD = self.self_attention_residual(
            x_BQD, lambda x: self.self_attention.extend(x, cache, mask=mask, n_cached=n_cached)
        )
        attention, residual = self.cross_attention, self.cross_attention_residual
        if attention is not None and residual is not None:
            x_BQD = residual(x_BQD, partial(attention.extend, cache=cache, mask=memory_mask))
        out_BQD: Tensor = self.feed_forward_residual(x_BQD, self.feed_forward)
        return out_BQD
