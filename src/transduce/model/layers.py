"""The parts that the encoder and the decoder are stacked from. Sections 3.1 and 3.3, figure 1.

Shapes: N real positions of a batch, M those of its source side, D d_model; see ``attention.py`` for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import ModelConfig
from transduce.model.attention import AttentionKernel, MultiHeadAttention, WeightsSink
from transduce.model.decoding import LayerCache
from transduce.model.dropout import Dropout, dropout
from transduce.model.layout import Layout

__all__ = ["LAYER_NORM_EPS", "DecoderLayer", "EncoderLayer", "FeedForward", "Residual"]

LAYER_NORM_EPS = 1e-6  # the authors' code; the paper gives none


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))). Sections 3.1 and 5.4.

    Deviates: with ``norm = "pre"`` it is x + Dropout(Sublayer(LayerNorm(x))), as in the authors' later code;
    ``norm = "post"`` is the paper.
    """

    def __init__(self, config: ModelConfig) -> None:
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

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.d_model, config.d_ff)
        self.w_2 = nn.Linear(config.d_ff, config.d_model)
        self.p_drop = config.p_drop_relu

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to (..., D)."""
        out: Tensor = self.w_2(dropout(F.relu(self.w_1(x)), self.p_drop, training=self.training))
        return out


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each in its residual."""

    def __init__(self, config: ModelConfig, *, kernel: AttentionKernel) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config, kernel=kernel)
        self.feed_forward = FeedForward(config)
        self.self_attention_residual = Residual(config)
        self.feed_forward_residual = Residual(config)

    def forward(
        self, x_ND: Tensor, layout: Layout, *, allow_B1S: Tensor | None, sink: WeightsSink | None = None
    ) -> Tensor:
        """(N, D) to (N, D)."""
        x_ND = self.self_attention_residual(
            x_ND, lambda x: self.self_attention(x, layout, x, layout, allow_BTS=allow_B1S, sink=sink)
        )
        out_ND: Tensor = self.feed_forward_residual(x_ND, self.feed_forward)
        return out_ND


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the encoder's output, then feed-forward, each in its residual."""

    def __init__(self, config: ModelConfig, *, kernel: AttentionKernel) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config, kernel=kernel)
        self.cross_attention = MultiHeadAttention(config, kernel=kernel)
        self.feed_forward = FeedForward(config)
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
            x_ND, lambda x: self.self_attention(x, layout, x, layout, allow_BTS=causal_1TT, sink=self_sink)
        )
        x_ND = self.cross_attention_residual(
            x_ND,
            lambda x: self.cross_attention(x, layout, memory_MD, memory_layout, allow_BTS=allow_B1S, sink=cross_sink),
        )
        out_ND: Tensor = self.feed_forward_residual(x_ND, self.feed_forward)
        return out_ND

    def step(
        self, x_ND: Tensor, cache: LayerCache, *, n_beams: int, allow_B1S: Tensor | None
    ) -> tuple[Tensor, LayerCache]:
        """The same for one new position of each row, (N, D), over the earlier ones in ``cache``."""
        cache_with_x = cache

        def ask_self(x_ND: Tensor) -> Tensor:
            nonlocal cache_with_x
            x_N1D = x_ND.unsqueeze(1)
            cache_with_x = cache.append(*self.self_attention.keys_values(x_N1D))
            k_NHTK, v_NHTV = cache_with_x.self_k_NHTK, cache_with_x.self_v_NHTV
            return self.self_attention.ask(x_N1D, k_NHTK, v_NHTV, allow_BTS=None).squeeze(1)

        def ask_source(x_ND: Tensor) -> Tensor:
            x_BWD = x_ND.view(-1, n_beams, x_ND.shape[-1])  # the beams of a sentence are query positions of one row
            k_BHSK, v_BHSV = cache.cross_k_BHSK, cache.cross_v_BHSV
            return self.cross_attention.ask(x_BWD, k_BHSK, v_BHSV, allow_BTS=allow_B1S).flatten(0, 1)

        x_ND = self.self_attention_residual(x_ND, ask_self)
        x_ND = self.cross_attention_residual(x_ND, ask_source)
        return self.feed_forward_residual(x_ND, self.feed_forward), cache_with_x
