"""Full and restricted self-attention. Sections 3.2 and 4, Table 1.

Shapes: B sentences, T query positions, S key positions, H heads, K d_k = d_v, D d_model.
"""

from __future__ import annotations

import math
from typing import Literal, assert_never

from torch import Tensor, nn

from transduce.errors import ShapeError
from transduce.model.attention import dot_product_attention, fused_attention, merge_heads, split_heads
from transduce.model.padding import causal_mask
from transduce.model.restricted import restricted_attention
from transduce.model.sequence_layers.sequence_layer import SequenceLayer

__all__ = ["FullSelfAttention", "RestrictedSelfAttention"]


class FullSelfAttention(SequenceLayer):
    """Multi-head self-attention over all positions: n^2 d operations, O(1) sequential operations, path length 1.

    ``kernel`` "fused" is torch's, which stores no scores; "reference" is equation 1, for reading and counting FLOPs.
    """

    def __init__(
        self, d_model: int, *, n_heads: int, is_causal: bool = False, kernel: Literal["fused", "reference"] = "fused"
    ) -> None:
        super().__init__(d_model, is_causal=is_causal)
        if d_model % n_heads:
            raise ShapeError(f"d_model {d_model} is not divisible by n_heads {n_heads}; choose a divisor")
        self.n_heads, self.kernel = n_heads, kernel
        self.w_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x_BTD: Tensor, is_real_BT: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        q_BHTK, k_BHTK, v_BHTK = (split_heads(part, self.n_heads) for part in self.w_qkv(x_BTD).chunk(3, dim=-1))
        out_BTD: Tensor = self.w_o(merge_heads(self._attend(q_BHTK, k_BHTK, v_BHTK, is_real_BT)))
        return out_BTD

    def _attend(self, q_BHTK: Tensor, k_BHTK: Tensor, v_BHTK: Tensor, is_real_BT: Tensor) -> Tensor:
        allow_BTT = is_real_BT.unsqueeze(1)
        if self.is_causal:
            allow_BTT = allow_BTT & causal_mask(is_real_BT.shape[1], is_real_BT.device)
        match self.kernel:
            case "fused":
                return fused_attention(q_BHTK, k_BHTK, v_BHTK, allow_BTS=allow_BTT)
            case "reference":
                return dot_product_attention(q_BHTK, k_BHTK, v_BHTK, allow_BTS=allow_BTT)[0]
            case _:
                assert_never(self.kernel)

    def multiplications(self, n_positions: int) -> int:
        """4 n d^2 for the projections, 2 n^2 d for Q K^T and (weights) V."""
        return 4 * n_positions * self.d_model**2 + 2 * n_positions**2 * self.d_model


class RestrictedSelfAttention(FullSelfAttention):
    """Self-attention restricted to a neighbourhood of r positions: r n d operations, path length n / r. Section 4.

    If causal, the neighbourhood is the position and the r - 1 before it; else r is odd and the position is its centre.

    It is computed as in the Transformer with ``attention = "restricted"`` (``model/restricted.py``): queries in blocks
    of r, each with a window of the 2 r - 1 keys that they may see, so time and memory grow with r n.
    """

    def __init__(self, d_model: int, *, n_heads: int, r: int, is_causal: bool = False) -> None:
        super().__init__(d_model, n_heads=n_heads, is_causal=is_causal, kernel="reference")
        if r < 1 or (r % 2 == 0 and not is_causal):
            raise ShapeError(f"the neighbourhood must be at least 1 and, unless causal, odd; got r = {r}")
        self.r = r

    def receptive_field(self, n_positions: int) -> tuple[int, int]:
        """r - 1 before if causal, else half of that on each side; at most the whole sentence."""
        before, after = (self.r - 1, 0) if self.is_causal else (self.r // 2, self.r // 2)
        return min(before, n_positions - 1), min(after, n_positions - 1)

    def multiplications(self, n_positions: int) -> int:
        """4 n d^2 for the projections, 2 d for each query and key of a block's window."""
        n_blocks = math.ceil(n_positions / self.r)
        return 4 * n_positions * self.d_model**2 + 2 * n_blocks * self.r * (2 * self.r - 1) * self.d_model

    def _attend(self, q_BHTK: Tensor, k_BHTK: Tensor, v_BHTK: Tensor, is_real_BT: Tensor) -> Tensor:
        return restricted_attention(
            q_BHTK,
            k_BHTK,
            v_BHTK,
            r=self.r,
            is_causal=self.is_causal,
            is_key_BT=is_real_BT,
            attend=lambda q, k, v, allow: dot_product_attention(q, k, v, allow_BTS=allow)[0],
        )
