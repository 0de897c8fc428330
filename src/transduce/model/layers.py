"""The parts that the encoder and the decoder are stacked from. Sections 3.1 and 3.3, figure 1.

Shapes: N real positions of a batch, M those of its source side, D d_model; see ``attention.py`` for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import TransformerConfig
from transduce.model.attention import AttentionKernel, CrossAttention, SelfAttention, WeightsSink
from transduce.model.decoding import LayerCache
from transduce.model.dropout import Dropout, dropout
from transduce.model.experts import MixtureOfExperts
from transduce.model.layout import Layout

__all__ = ["LAYER_NORM_EPS", "DecoderLayer", "EncoderLayer", "FeedForward", "Residual", "make_feed_forward"]

LAYER_NORM_EPS = 1e-6  # the authors' code; the paper gives none


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))). Sections 3.1 and 5.4.

    Deviates: with ``norm = "pre"`` it is x + Dropout(Sublayer(LayerNorm(x))), as in the authors' later code;
    ``norm = "post"`` is the paper.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.norm_position = config.norm
        self.norm = nn.LayerNorm(config.d_model, eps=LAYER_NORM_EPS)
        self.dropout = Dropout(config.p_drop)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(..., D) to (..., D)."""
        match self.norm_position:
            case "post":
                out: Tensor = self.norm(x + self.dropout(sublayer(x)))
            case "pre":
                out = x + self.dropout(sublayer(self.norm(x)))
            case _:
                assert_never(self.norm_position)
        return out


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2. Section 3.3, equation 2."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.d_model, config.d_ff)
        self.w_2 = nn.Linear(config.d_ff, config.d_model)
        self.p_drop = config.p_drop_relu

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to (..., D)."""
        out: Tensor = self.w_2(dropout(F.relu(self.w_1(x), inplace=True), self.p_drop, training=self.training))
        return out


def make_feed_forward(config: TransformerConfig) -> nn.Module:
    """One network for all positions, as in the paper, or several to choose from."""
    return FeedForward(config) if config.n_experts == 1 else MixtureOfExperts(config, FeedForward)


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each in its residual."""

    def __init__(self, config: TransformerConfig, *, kernel: AttentionKernel) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config, kernel=kernel)
        self.feed_forward = make_feed_forward(config)
        self.self_attention_residual = Residual(config)
        self.feed_forward_residual = Residual(config)

    def forward(
        self, x_ND: Tensor, layout: Layout, *, allow_B1S: Tensor | None, sink: WeightsSink | None = None
    ) -> Tensor:
        """(N, D) to (N, D)."""
        x_ND = self.self_attention_residual(
            x_ND, lambda x: self.self_attention(x, layout, allow_BTS=allow_B1S, sink=sink)
        )
        out_ND: Tensor = self.feed_forward_residual(x_ND, self.feed_forward)
        return out_ND


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the encoder's output, then feed-forward, each in its residual."""

    def __init__(self, config: TransformerConfig, *, kernel: AttentionKernel) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config, kernel=kernel)
        self.cross_attention = CrossAttention(config, kernel=kernel)
        self.feed_forward = make_feed_forward(config)
        self.self_attention_residual = Residual(config)
        self.cross_attention_residual = Residual(config)
        self.feed_forward_residual = Residual(config)

    def forward(
        self,
        x_ND: Tensor,
        layout: Layout,
        memory_MD: Tensor,
        memory_layout: Layout,
        *,
        causal_1TT: Tensor,
        allow_B1S: Tensor | None,
        self_sink: WeightsSink | None = None,
        cross_sink: WeightsSink | None = None,
    ) -> Tensor:
        """(N, D) to (N, D), asking the encoder's output ``memory``, (M, D)."""
        x_ND = self.self_attention_residual(
            x_ND, lambda x: self.self_attention(x, layout, allow_BTS=causal_1TT, sink=self_sink)
        )
        x_ND = self.cross_attention_residual(
            x_ND,
            lambda x: self.cross_attention(x, layout, memory_MD, memory_layout, allow_BTS=allow_B1S, sink=cross_sink),
        )
        out_ND: Tensor = self.feed_forward_residual(x_ND, self.feed_forward)
        return out_ND

    def step(
        self,
        x_BWD: Tensor,
        cache: LayerCache,
        *,
        blocked_GWC: Tensor | None,
        n_filled: int,
        blocked_G1S: Tensor | None,
    ) -> Tensor:
        """The same for one new position of each row, (B, W, D).

        Its keys and values go into the next slots of ``cache``; ``blocked_GWC`` has these slots at its end.
        """
        x_BWD = self.self_attention_residual(
            x_BWD, lambda x: self.self_attention.step(x, cache, blocked_GWC=blocked_GWC, n_filled=n_filled)
        )
        x_BWD = self.cross_attention_residual(
            x_BWD, lambda x: self.cross_attention.step(x, cache, blocked_G1S=blocked_G1S)
        )
        out_BWD: Tensor = self.feed_forward_residual(x_BWD, self.feed_forward)
        return out_BWD
