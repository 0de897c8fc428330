"""Scaled dot-product attention and multi-head attention. Section 3.2, figure 2.

Shapes: B batch, T positions that ask, S positions that are asked, H heads, G = B * H, K d_k, V d_v, D d_model,
E several widths side by side; N the real positions of a batch in one list, (N, D), without its padding
(see ``padding.py``); Q new positions of a decoding step, C slots of its cache (see ``decoding.py``).
``allow`` masks are boolean, True = may attend, and broadcast over heads.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, assert_never

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.errors import ShapeError
from transduce.model.decoding import LayerCache
from transduce.model.dropout import dropout
from transduce.model.padding import EncoderOutput, PaddingInfo
from transduce.model.stack_config import StackConfig

__all__ = [
    "AttentionBias",
    "AttentionHook",
    "AttentionKernel",
    "AttentionKind",
    "CrossAttention",
    "FusedLinear",
    "MultiHeadAttention",
    "SelfAttention",
    "WeightsHook",
    "attention",
    "fused_attention",
    "incremental_attention",
    "layer_hook",
    "merge_heads",
    "split_heads",
]  # fmt: skip

AttentionKernel = Literal["auto", "reference", "fused"]
AttentionKind = Literal["encoder", "decoder", "cross"]

# A sentence with more scores than this, T x S, is left to the fused kernel, which does not hold them in memory.
# Below it, on a CPU, plain matrix products are faster.
LARGEST_REFERENCE_SCORES = 128 * 128


class AttentionHook(Protocol):
    """Receives the attention weights (B, H, T, S) of every layer, counted from 0, as they are computed."""

    def __call__(self, kind: AttentionKind, layer: int, weights_BHTS: Tensor, /) -> None:
        """Take the weights of one layer."""


WeightsHook = Callable[[Tensor], None]


def layer_hook(hook: AttentionHook | None, kind: AttentionKind, layer: int) -> WeightsHook | None:
    """The part of a sink that belongs to one attention of the model."""
    return None if hook is None else functools.partial(hook, kind, layer)


def attention(
    q_BHTK: Tensor, k_BHSK: Tensor, v_BHSV: Tensor, *, allow_BTS: Tensor | None = None, p_drop: float = 0.0
) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(d_k)) V and the weights before dropout. Section 3.2.1, equation 1.

    Returns (B, H, T, V) and (B, H, T, S). ``p_drop`` drops weights.
    Raises ShapeError if a position may attend to nothing: its softmax has no value.

    >>> import torch
    >>> one = torch.ones(1, 1, 2, 4)
    >>> attention(one, one, one)[1].tolist()
    [[[[0.5, 0.5], [0.5, 0.5]]]]
    """
    scores_BHTS = q_BHTK @ k_BHSK.transpose(-2, -1) * (q_BHTK.shape[-1] ** -0.5)
    if allow_BTS is not None:
        if not bool(allow_BTS.any(dim=-1).all()):
            raise ShapeError(
                "attention mask: a position may attend to nothing; allow at least one position in each row"
            )
        scores_BHTS = scores_BHTS.masked_fill(~allow_BTS.unsqueeze(1), -math.inf)
    weights_BHTS = scores_BHTS.softmax(dim=-1)
    return dropout(weights_BHTS, p_drop, training=p_drop > 0) @ v_BHSV, weights_BHTS


def fused_attention(
    q_BHTK: Tensor, k_BHSK: Tensor, v_BHSV: Tensor, *, allow_BTS: Tensor | None = None, p_drop: float = 0.0
) -> Tensor:
    """The values of ``attention``, (B, H, T, V), by torch's kernels, which never hold the weights in memory."""
    allow = None if allow_BTS is None else allow_BTS.unsqueeze(1)
    return F.scaled_dot_product_attention(q_BHTK, k_BHSK, v_BHSV, attn_mask=allow, dropout_p=p_drop)


def incremental_attention(q_BHTK: Tensor, k_BHSK: Tensor, v_BHSV: Tensor, *, bias_GTS: Tensor | None) -> Tensor:
    """The values of ``attention``, (B, H, T, V), for the few queries of a decoding step: as few operations as can be.

    ``bias`` is what is added to the scores, as ``AttentionBias`` makes it.
    """
    q_GTK, k_GSK, v_GSV = q_BHTK.flatten(0, 1), k_BHSK.flatten(0, 1), v_BHSV.flatten(0, 1)
    nothing = q_GTK.new_empty(1, 1, 1) if bias_GTS is None else bias_GTS
    beta = 0 if bias_GTS is None else 1
    scores_GTS = torch.baddbmm(nothing, q_GTK, k_GSK.transpose(1, 2), beta=beta, alpha=q_BHTK.shape[-1] ** -0.5)
    return torch.bmm(scores_GTS.softmax(dim=-1), v_GSV).view(*q_BHTK.shape[:2], *scores_GTS.shape[1:2], -1)


class AttentionBias:
    """A mask of a decoding step as its layers take it: what is added to the scores, made once for all of them."""

    def __init__(self, allow_BTS: Tensor | None, *, n_heads: int) -> None:
        self.allow_BTS, self.n_heads = allow_BTS, n_heads
        self._bias_GTS: Tensor | None = None

    def bias(self, dtype: torch.dtype) -> Tensor | None:
        """For each head, (B * H, T, S): 0 where one may attend, else minus infinity; None where nothing is masked."""
        if self.allow_BTS is not None and self._bias_GTS is None:
            bias_BTS = torch.zeros_like(self.allow_BTS, dtype=dtype).masked_fill_(~self.allow_BTS, -math.inf)
            self._bias_GTS = bias_BTS.unsqueeze(1).expand(-1, self.n_heads, -1, -1).flatten(0, 1)
        return self._bias_GTS


def split_heads(x_BTD: Tensor, n_heads: int, /) -> Tensor:
    """(B, T, H * K) to (B, H, T, K)."""
    return x_BTD.view(*x_BTD.shape[:-1], n_heads, -1).transpose(1, 2)


def merge_heads(x_BHTV: Tensor, /) -> Tensor:
    """(B, H, T, V) to (B, T, H * V): the heads side by side."""
    return x_BHTV.transpose(1, 2).flatten(-2)


class FusedLinear(nn.Linear):
    """Several matrices of the same input, one above the other in one: one product instead of several."""

    def __init__(self, d_model: int, widths: Sequence[int]) -> None:
        super().__init__(d_model, sum(widths), bias=False)
        self.widths = list(widths)

    def extra_repr(self) -> str:
        """What ``print(model)`` shows."""
        return f"{self.in_features}, {' + '.join(map(str, self.widths))}"


class MultiHeadAttention(nn.Module):
    """Concat(head_1, ..., head_h) W^O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V). Section 3.2.2.

    The h matrices of a kind are one matrix, (h d_k, d_model); no biases, as in the paper. ``SelfAttention`` and
    ``CrossAttention`` say what asks and what is asked.
    """

    def __init__(self, config: StackConfig, *, kernel: AttentionKernel = "auto") -> None:
        super().__init__()
        self.n_heads = config.n_heads
        self.p_drop = config.p_drop_attention
        self.kernel = kernel
        self.w_o = nn.Linear(config.n_heads * config.d_v, config.d_model, bias=False)

    def split(self, x_BTE: Tensor, widths: Sequence[int]) -> list[Tensor]:
        """What several projections made, (B, T, h d_k + ...), as heads: (B, H, T, K) each."""
        return [split_heads(part, self.n_heads) for part in torch.split(x_BTE, list(widths), dim=-1)]

    def attend(
        self,
        q_BHTK: Tensor,
        k_BHSK: Tensor,
        v_BHSV: Tensor,
        *,
        allow_BTS: Tensor | None,
        hook: WeightsHook | None,
    ) -> Tensor:
        """Attention of all heads by the kernel that fits; (B, H, T, V). A sink is served by the reference."""
        p_drop = self.p_drop if self.training else 0.0
        kernel = "reference" if hook is not None else self.kernel
        if kernel == "auto":
            is_short = q_BHTK.shape[-2] * k_BHSK.shape[-2] <= LARGEST_REFERENCE_SCORES
            kernel = "reference" if is_short and q_BHTK.device.type == "cpu" else "fused"
        match kernel:
            case "fused":
                return fused_attention(q_BHTK, k_BHSK, v_BHSV, allow_BTS=allow_BTS, p_drop=p_drop)
            case "reference":
                heads_BHTV, weights_BHTS = attention(q_BHTK, k_BHSK, v_BHSV, allow_BTS=allow_BTS, p_drop=p_drop)
                if hook is not None:
                    hook(weights_BHTS)
                return heads_BHTV
            case _:
                assert_never(kernel)


class SelfAttention(MultiHeadAttention):
    """Each position asks those of the same sentence: queries, keys and values are made of the same states."""

    def __init__(self, config: StackConfig, *, kernel: AttentionKernel = "auto") -> None:
        super().__init__(config, kernel=kernel)
        width_k, width_v = config.n_heads * config.d_k, config.n_heads * config.d_v
        self.widths = (width_k, width_k, width_v)
        self.w_qkv = FusedLinear(config.d_model, self.widths)

    def forward(
        self, x_ND: Tensor, padding: PaddingInfo, *, allow_BTS: Tensor | None, hook: WeightsHook | None = None
    ) -> Tensor:
        """(N, D) to (N, D)."""
        q_BHTK, k_BHTK, v_BHTV = self.split(padding.pad(self.w_qkv(x_ND)), self.widths)
        heads_BHTV = self.attend(q_BHTK, k_BHTK, v_BHTV, allow_BTS=allow_BTS, hook=hook)
        out_ND: Tensor = self.w_o(padding.unpad(merge_heads(heads_BHTV)))
        return out_ND

    def extend(self, x_BQD: Tensor, cache: LayerCache, *, mask: AttentionBias, n_cached: int) -> Tensor:
        """A decoding step, (B, Q, D) to (B, Q, D): append the new keys and values to the cache, then attend to all."""
        q_BHQK, new_k_BHQK, new_v_BHQV = self.split(self.w_qkv(x_BQD), self.widths)
        k_BHCK, v_BHCV = cache.append(new_k_BHQK, new_v_BHQV, n_cached=n_cached)
        heads_BHQV = incremental_attention(q_BHQK, k_BHCK, v_BHCV, bias_GTS=mask.bias(q_BHQK.dtype))
        out_BQD: Tensor = self.w_o(merge_heads(heads_BHQV))
        return out_BQD


class CrossAttention(MultiHeadAttention):
    """Each position asks those of the source: queries are made of its states, keys and values of the encoder's."""

    def __init__(self, config: StackConfig, *, kernel: AttentionKernel = "auto") -> None:
        super().__init__(config, kernel=kernel)
        width_k, width_v = config.n_heads * config.d_k, config.n_heads * config.d_v
        self.widths = (width_k, width_v)
        self.w_q = nn.Linear(config.d_model, width_k, bias=False)
        self.w_kv = FusedLinear(config.d_model, self.widths)

    def forward(
        self, x_ND: Tensor, padding: PaddingInfo, memory: EncoderOutput, *, hook: WeightsHook | None = None
    ) -> Tensor:
        """(N, D) to (N, D), attending to all real positions of the ``memory``."""
        q_BHTK = split_heads(padding.pad(self.w_q(x_ND)), self.n_heads)
        k_BHSK, v_BHSV = self.split(memory.padding.pad(self.w_kv(memory.states_MD)), self.widths)
        heads_BHTV = self.attend(q_BHTK, k_BHSK, v_BHSV, allow_BTS=memory.padding.allow_B1S(), hook=hook)
        out_ND: Tensor = self.w_o(padding.unpad(merge_heads(heads_BHTV)))
        return out_ND

    def keys_values(self, memory_BSD: Tensor) -> tuple[Tensor, Tensor]:
        """Keys (B, H, S, K) and values (B, H, S, V) of a source, which every step asks."""
        k_BHSK, v_BHSV = self.split(self.w_kv(memory_BSD), self.widths)
        return k_BHSK.contiguous(), v_BHSV.contiguous()

    def extend(self, x_BQD: Tensor, cache: LayerCache, *, mask: AttentionBias) -> Tensor:
        """A decoding step, (B, Q, D) to (B, Q, D): the rows of a sentence attend to one copy of its source."""
        assert cache.cross_k_BHSK is not None
        assert cache.cross_v_BHSV is not None
        q_BHQK = split_heads(self.w_q(x_BQD), self.n_heads)
        bias_G1S = mask.bias(q_BHQK.dtype)
        heads_BHQV = incremental_attention(q_BHQK, cache.cross_k_BHSK, cache.cross_v_BHSV, bias_GTS=bias_G1S)
        out_BQD: Tensor = self.w_o(merge_heads(heads_BHQV))
        return out_BQD
