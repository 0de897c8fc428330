"""Scaled dot-product attention and multi-head attention. Section 3.2, figure 2.

Read ``dot_product_attention`` first: it is equation 1. ``fused_attention`` computes the same with torch's kernels, for
GPUs and long sentences; ``incremental_attention`` computes the same in few operations, for decoding steps.
``unpadded_attention.py`` computes the same in C, for training on a CPU.
``SelfAttention`` and ``CrossAttention`` are the two multi-head layers; with another score than q . k / sqrt(d_k)
(``score_functions.py``) they use ``weighted_values``, the rest of equation 1. With ``attention = "restricted"``,
self-attention is computed in blocks (``restricted.py``). Masks (``allow``) are boolean, True = may attend.

Shapes: B sentences, T query positions, S key positions, H heads, G = B H, K d_k, U d_v, D d_model, O features
of all heads or of several projections, N real positions of the batch (see ``padding.py``), M real source positions,
Q new query positions of an incremental step, C cache slots (see ``decoding.py``).
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
from transduce.model.padding import EncoderOutput, PaddingInfo, causal_mask
from transduce.model.restricted import band_mask, restricted_attention
from transduce.model.score_functions import make_compatibility
from transduce.model.stack_config import StackConfig
from transduce.model.unpadded_attention import can_attend_unpadded, unpadded_attention

__all__ = [
    "AttentionBias", "AttentionHook", "AttentionKernel", "AttentionKind", "CrossAttention", "FusedLinear",
    "MultiHeadAttention", "SelfAttention", "WeightsHook", "dot_product_attention", "fused_attention",
    "incremental_attention", "layer_hook", "merge_heads", "split_heads", "weighted_values",
]  # fmt: skip

AttentionKernel = Literal["auto", "reference", "fused"]
AttentionKind = Literal["encoder", "decoder", "cross"]

# On a CPU, the reference is faster up to this many scores (T x S) of a sentence. Above, the fused kernel is used, since
# it does not store the scores.
MAX_REFERENCE_SCORES = 128 * 128
# In training without a causal mask, torch's kernels are faster above this length on processors with AMX.
MAX_UNPADDED = 512


class AttentionHook(Protocol):
    """A callback for the attention weights of every layer, as they are computed."""

    def __call__(self, kind: AttentionKind, layer: int, weights_BHTS: Tensor, /) -> None:
        """Receive the weights (B, H, T, S) of one layer; ``layer`` counts from 0."""


WeightsHook = Callable[[Tensor], None]


def layer_hook(hook: AttentionHook | None, kind: AttentionKind, layer: int) -> WeightsHook | None:
    """Bind a hook to one attention layer of the model."""
    return None if hook is None else functools.partial(hook, kind, layer)


def dot_product_attention(
    q_BHTK: Tensor, k_BHSK: Tensor, v_BHSU: Tensor, *, allow_BTS: Tensor | None = None, p_drop: float = 0.0
) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(d_k)) V, and the attention weights. Section 3.2.1, equation 1.

    Returns the outputs (B, H, T, U) and the weights before dropout (B, H, T, S). ``p_drop`` is dropout on the weights.
    Raises ShapeError if a query may attend to no position, where the softmax is undefined.

    >>> import torch
    >>> one = torch.ones(1, 1, 2, 4)
    >>> dot_product_attention(one, one, one)[1].tolist()
    [[[[0.5, 0.5], [0.5, 0.5]]]]
    """
    scores_BHTS = q_BHTK @ k_BHSK.transpose(-2, -1) * (q_BHTK.shape[-1] ** -0.5)
    return weighted_values(scores_BHTS, v_BHSU, allow_BTS=allow_BTS, p_drop=p_drop)


def weighted_values(
    scores_BHTS: Tensor, v_BHSU: Tensor, *, allow_BTS: Tensor | None = None, p_drop: float = 0.0
) -> tuple[Tensor, Tensor]:
    """``dot_product_attention`` from the scores of queries and keys on: mask, softmax, weighted sum of the values."""
    if allow_BTS is not None:
        if not bool(allow_BTS.any(dim=-1).all()):
            raise ShapeError("attention mask: a query may attend to no position; allow at least one in each row")
        scores_BHTS = scores_BHTS.masked_fill(~allow_BTS.unsqueeze(1), -math.inf)
    weights_BHTS = scores_BHTS.softmax(dim=-1)
    return dropout(weights_BHTS, p_drop, training=p_drop > 0) @ v_BHSU, weights_BHTS


def fused_attention(
    q_BHTK: Tensor, k_BHSK: Tensor, v_BHSU: Tensor, *, allow_BTS: Tensor | None = None, p_drop: float = 0.0
) -> Tensor:
    """The outputs of ``dot_product_attention``, (B, H, T, U), by torch's kernels, which never store the weights."""
    allow = None if allow_BTS is None else allow_BTS.unsqueeze(1)
    return F.scaled_dot_product_attention(q_BHTK, k_BHSK, v_BHSU, attn_mask=allow, dropout_p=p_drop)


def incremental_attention(q_BHTK: Tensor, k_BHSK: Tensor, v_BHSU: Tensor, *, bias_GTS: Tensor | None) -> Tensor:
    """The outputs of ``dot_product_attention``, (B, H, T, U), for the few queries of a decoding step, in three kernels.

    ``bias`` is added to the scores (see ``AttentionBias``); None masks nothing.
    """
    q_GTK, k_GSK, v_GSU = q_BHTK.flatten(0, 1), k_BHSK.flatten(0, 1), v_BHSU.flatten(0, 1)
    beta, bias = (0, q_GTK.new_empty(1, 1, 1)) if bias_GTS is None else (1, bias_GTS)  # beta = 0 ignores the bias
    scores_GTS = torch.baddbmm(bias, q_GTK, k_GSK.transpose(1, 2), beta=beta, alpha=q_BHTK.shape[-1] ** -0.5)
    return torch.bmm(scores_GTS.softmax(dim=-1), v_GSU).view(*q_BHTK.shape[:2], *scores_GTS.shape[1:2], -1)


class AttentionBias:
    """The mask of a decoding step as an additive bias on the scores, computed once for all layers."""

    def __init__(self, allow_BTS: Tensor | None, *, n_heads: int) -> None:
        self.allow_BTS, self.n_heads = allow_BTS, n_heads
        self._bias_GTS: Tensor | None = None

    def bias(self, dtype: torch.dtype) -> Tensor | None:
        """The bias (B H, T, S): 0 where attention is allowed, else minus infinity; None if nothing is masked."""
        if self.allow_BTS is not None and self._bias_GTS is None:
            bias_BTS = torch.zeros_like(self.allow_BTS, dtype=dtype).masked_fill_(~self.allow_BTS, -math.inf)
            self._bias_GTS = bias_BTS.unsqueeze(1).expand(-1, self.n_heads, -1, -1).flatten(0, 1)
        return self._bias_GTS


def split_heads(x_BTD: Tensor, n_heads: int, /) -> Tensor:
    """Split the features into heads: (B, T, H K) to (B, H, T, K)."""
    return x_BTD.view(*x_BTD.shape[:-1], n_heads, -1).transpose(1, 2)


def merge_heads(x_BHTU: Tensor, /) -> Tensor:
    """Concatenate the heads: (B, H, T, U) to (B, T, H U)."""
    return x_BHTU.transpose(1, 2).flatten(-2)


class FusedLinear(nn.Linear):
    """Several projections of the same input in one matrix product, their weights stacked."""

    def __init__(self, d_model: int, widths: Sequence[int], *, bias: bool = False) -> None:
        super().__init__(d_model, sum(widths), bias=bias)
        self.widths = list(widths)

    def extra_repr(self) -> str:
        """The sizes that ``print(model)`` shows."""
        return f"{self.in_features}, {' + '.join(map(str, self.widths))}"


class MultiHeadAttention(nn.Module):
    """Concat(head_1, ..., head_h) W^O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V). Section 3.2.2.

    The matrices W_1, ..., W_h of a kind are stacked in one, (h d_k, d_model). The base of ``SelfAttention`` and
    ``CrossAttention``, which make the queries, keys and values.

    Deviates: with ``attention_bias`` all projections have biases; without is the paper.
    """

    def __init__(self, config: StackConfig, *, kernel: AttentionKernel = "auto") -> None:
        super().__init__()
        self.n_heads, self.d_k, self.d_v = config.n_heads, config.d_k, config.d_v
        self.p_drop = config.p_drop_attention
        self.kernel = kernel
        self.compatibility = make_compatibility(config)  # None: the paper's
        self.w_o = nn.Linear(config.n_heads * config.d_v, config.d_model, bias=config.attention_bias)

    def split(self, x_BTO: Tensor, widths: Sequence[int]) -> list[Tensor]:
        """Split concatenated projections (B, T, O) of the given widths into heads: (B, H, T, K) each."""
        return [split_heads(part, self.n_heads) for part in torch.split(x_BTO, list(widths), dim=-1)]

    def attend(
        self,
        q_BHTK: Tensor,
        k_BHSK: Tensor,
        v_BHSU: Tensor,
        *,
        queries: PaddingInfo,
        keys: PaddingInfo,
        allow_BTS: Tensor | None,
        hook: WeightsHook | None,
    ) -> Tensor:
        """Attention in all heads, (B, H, T, U), by the chosen kernel; with a hook, by the reference."""
        p_drop = self.p_drop if self.training else 0.0
        kernel = "reference" if hook is not None else self.kernel_for(q_BHTK, q_BHTK.shape[-2] * k_BHSK.shape[-2])
        match kernel:
            case "fused":
                return fused_attention(q_BHTK, k_BHSK, v_BHSU, allow_BTS=allow_BTS, p_drop=p_drop)
            case "reference":
                if self.compatibility is None:
                    heads_BHTU, weights_BHTS = dot_product_attention(
                        q_BHTK, k_BHSK, v_BHSU, allow_BTS=allow_BTS, p_drop=p_drop
                    )
                else:
                    scores_BHTS = self.compatibility(q_BHTK, k_BHSK)
                    heads_BHTU, weights_BHTS = weighted_values(scores_BHTS, v_BHSU, allow_BTS=allow_BTS, p_drop=p_drop)
                if hook is not None:
                    hook(weights_BHTS[: queries.n_sentences, :, : queries.n_positions, : keys.n_positions])
                return heads_BHTU
            case _:
                assert_never(kernel)

    def kernel_for(self, q_BHTK: Tensor, n_scores: int) -> Literal["reference", "fused"]:
        """The kernel for attention with so many scores of a sentence."""
        if self.compatibility is not None:
            return "reference"
        if self.kernel == "auto":
            return "reference" if n_scores <= MAX_REFERENCE_SCORES and q_BHTK.device.type == "cpu" else "fused"
        return self.kernel

    def attend_unpadded(
        self, x_NO: Tensor, memory_MO: Tensor | None = None, *, queries: PaddingInfo, keys: PaddingInfo, is_causal: bool
    ) -> Tensor:
        """Attention in all heads, (N, H U), of projections without padding."""
        offsets, sizes = (queries.offsets, keys.offsets), {"n_heads": self.n_heads, "d_k": self.d_k, "d_v": self.d_v}
        return unpadded_attention(x_NO, memory_MO, offsets, **sizes, is_causal=is_causal)

    def is_unpadded(self, x_NO: Tensor, keys: PaddingInfo, hook: WeightsHook | None, *, is_causal: bool) -> bool:
        """Whether the projections of a training batch need no padding."""
        is_plain = self.kernel == "auto" and hook is None and self.compatibility is None and self.p_drop == 0
        return is_plain and (is_causal or keys.n_positions <= MAX_UNPADDED) and can_attend_unpadded(x_NO)

    def attend_step(self, q_BHQK: Tensor, k_BHCK: Tensor, v_BHCU: Tensor, *, mask: AttentionBias) -> Tensor:
        """Attention of a decoding step in all heads, (B, H, Q, U)."""
        if self.compatibility is None:
            return incremental_attention(q_BHQK, k_BHCK, v_BHCU, bias_GTS=mask.bias(q_BHQK.dtype))
        return weighted_values(self.compatibility(q_BHQK, k_BHCK), v_BHCU, allow_BTS=mask.allow_BTS)[0]


class SelfAttention(MultiHeadAttention):
    """Multi-head self-attention: queries, keys and values are projections of the same states. Section 3.2.3.

    Deviates: with ``attention = "restricted"`` each position attends to a neighbourhood only (section 4), which
    ``is_causal`` puts before it; "full" is the paper's.
    """

    def __init__(self, config: StackConfig, *, kernel: AttentionKernel = "auto", is_causal: bool = False) -> None:
        super().__init__(config, kernel=kernel)
        self.r, self.is_causal = config.neighbourhood if config.attention == "restricted" else None, is_causal
        width_k, width_v = config.n_heads * config.d_k, config.n_heads * config.d_v
        self.widths = (width_k, width_k, width_v)
        self.w_qkv = FusedLinear(config.d_model, self.widths, bias=config.attention_bias)

    def mask(self, padding: PaddingInfo) -> Tensor | None:
        """The mask of a batch: causal, or all real positions (None without padding).

        Restricted attention makes the rest of its mask itself, block by block.
        """
        if not self.is_causal:
            return padding.allow_B1S()
        if self.r is not None:
            return None  # padding is on the right, so no real position sees it
        return causal_mask(padding.shape_BT[1], padding.index_N.device)

    def forward(
        self, x_ND: Tensor, padding: PaddingInfo, *, allow_BTS: Tensor | None = None, hook: WeightsHook | None = None
    ) -> Tensor:
        """Attend within each sentence, (N, D) to (N, D); ``allow`` is in the place of the layer's own ``mask``."""
        qkv_NO = self.w_qkv(x_ND)
        is_own = allow_BTS is None and self.r is None
        if is_own and self.is_unpadded(qkv_NO, padding, hook, is_causal=self.is_causal):
            heads_NU = self.attend_unpadded(qkv_NO, queries=padding, keys=padding, is_causal=self.is_causal)
            unpadded_ND: Tensor = self.w_o(heads_NU)
            return unpadded_ND
        allow_BTS = self.mask(padding) if allow_BTS is None else allow_BTS
        q_BHTK, k_BHTK, v_BHTU = self.split(padding.pad(qkv_NO), self.widths)
        if self.r is not None and hook is None:
            heads_BHTU = self.attend_nearby(q_BHTK, k_BHTK, v_BHTU, self.r, allow_BTS)
        else:
            if self.r is not None:
                band_1TT = band_mask(q_BHTK.shape[2], self.r, is_causal=self.is_causal, device=x_ND.device)
                allow_BTS = band_1TT if allow_BTS is None else allow_BTS & band_1TT
                allow_BTS = allow_BTS | ~allow_BTS.any(dim=-1, keepdim=True)  # queries at padding
            heads_BHTU = self.attend(
                q_BHTK, k_BHTK, v_BHTU, queries=padding, keys=padding, allow_BTS=allow_BTS, hook=hook
            )
        out_ND: Tensor = self.w_o(padding.unpad(merge_heads(heads_BHTU)))
        return out_ND

    def attend_nearby(self, q_BHTK: Tensor, k_BHTK: Tensor, v_BHTU: Tensor, r: int, allow_B1S: Tensor | None) -> Tensor:
        """Restricted attention in all heads, (B, H, T, U), by the chosen kernel."""
        p_drop = self.p_drop if self.training else 0.0

        def attend(q: Tensor, k: Tensor, v: Tensor, allow: Tensor) -> Tensor:
            if self.compatibility is not None:
                return weighted_values(self.compatibility(q, k), v, allow_BTS=allow, p_drop=p_drop)[0]
            if self.kernel_for(q, q_BHTK.shape[2] * k.shape[2]) == "fused":
                return fused_attention(q, k, v, allow_BTS=allow, p_drop=p_drop)
            return dot_product_attention(q, k, v, allow_BTS=allow, p_drop=p_drop)[0]

        is_key_BT = None if allow_B1S is None else allow_B1S.squeeze(1)
        return restricted_attention(
            q_BHTK, k_BHTK, v_BHTU, r=r, is_causal=self.is_causal, is_key_BT=is_key_BT, attend=attend
        )

    def extend(self, x_BQD: Tensor, cache: LayerCache, *, mask: AttentionBias, n_cached: int) -> Tensor:
        """One decoding step, (B, Q, D) to (B, Q, D): append keys and values to the cache, then attend to all of it."""
        q_BHQK, new_k_BHQK, new_v_BHQU = self.split(self.w_qkv(x_BQD), self.widths)
        k_BHCK, v_BHCU = cache.append(new_k_BHQK, new_v_BHQU, n_cached=n_cached)
        heads_BHQU = self.attend_step(q_BHQK, k_BHCK, v_BHCU, mask=mask)
        out_BQD: Tensor = self.w_o(merge_heads(heads_BHQU))
        return out_BQD


class CrossAttention(MultiHeadAttention):
    """Multi-head cross-attention: queries from the decoder, keys and values from the encoder. Section 3.2.3."""

    def __init__(self, config: StackConfig, *, kernel: AttentionKernel = "auto") -> None:
        super().__init__(config, kernel=kernel)
        width_k, width_v = config.n_heads * config.d_k, config.n_heads * config.d_v
        self.widths = (width_k, width_v)
        self.w_q = nn.Linear(config.d_model, width_k, bias=config.attention_bias)
        self.w_kv = FusedLinear(config.d_model, self.widths, bias=config.attention_bias)

    def forward(
        self, x_ND: Tensor, padding: PaddingInfo, memory: EncoderOutput, *, hook: WeightsHook | None = None
    ) -> Tensor:
        """Attend to all real positions of the ``memory``, (N, D) to (N, D)."""
        q_NO, kv_MO = self.w_q(x_ND), self.w_kv(memory.states_MD)
        keys = memory.padding
        if q_NO.dtype == kv_MO.dtype and self.is_unpadded(q_NO, keys, hook, is_causal=False):
            heads_NU = self.attend_unpadded(q_NO, kv_MO, queries=padding, keys=keys, is_causal=False)
            unpadded_ND: Tensor = self.w_o(heads_NU)
            return unpadded_ND
        k_BHSK, v_BHSU = self.split(keys.pad(kv_MO), self.widths)
        q_BHTK = split_heads(padding.pad(q_NO.to(k_BHSK.dtype)), self.n_heads)
        heads_BHTU = self.attend(
            q_BHTK, k_BHSK, v_BHSU, queries=padding, keys=keys, allow_BTS=keys.allow_B1S(), hook=hook
        )
        out_ND: Tensor = self.w_o(padding.unpad(merge_heads(heads_BHTU)))
        return out_ND

    def keys_values(self, memory_BSD: Tensor) -> tuple[Tensor, Tensor]:
        """Keys (B, H, S, K) and values (B, H, S, U) of the source, computed once for all decoding steps."""
        k_BHSK, v_BHSU = self.split(self.w_kv(memory_BSD), self.widths)
        return k_BHSK.contiguous(), v_BHSU.contiguous()

    def extend(self, x_BQD: Tensor, cache: LayerCache, *, mask: AttentionBias) -> Tensor:
        """One decoding step, (B, Q, D) to (B, Q, D): all beams of a sentence attend to one copy of its source."""
        assert cache.cross_k_BHSK is not None
        assert cache.cross_v_BHSU is not None
        q_BHQK = split_heads(self.w_q(x_BQD).to(cache.cross_k_BHSK.dtype), self.n_heads)
        heads_BHQU = self.attend_step(q_BHQK, cache.cross_k_BHSK, cache.cross_v_BHSU, mask=mask)
        out_BQD: Tensor = self.w_o(merge_heads(heads_BHQU))
        return out_BQD
