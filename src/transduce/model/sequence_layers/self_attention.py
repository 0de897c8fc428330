"""Self-attention over all positions, and over a neighbourhood only. Sections 3.2 and 4, Table 1.

Shapes: B batch, T positions, H heads, K d_k, D d_model; C blocks of positions, P positions of a block, W of its window.
"""

from __future__ import annotations

import math
from typing import Literal, assert_never

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.errors import ShapeError
from transduce.model.attention import attention, fused_attention, merge_heads, split_heads
from transduce.model.padding import causal_mask
from transduce.model.sequence_layers.sequence_layer import SequenceLayer

__all__ = ["FullSelfAttention", "RestrictedSelfAttention"]


class FullSelfAttention(SequenceLayer):
    """Every position asks every other: n^2 d, one step, one link between any two.

    ``kernel``: "fused" is torch's, which holds no scores; "reference" has every operation in the open, to be counted.
    """

    def __init__(
        self, d_model: int, *, n_heads: int, is_causal: bool = False, kernel: Literal["fused", "reference"] = "fused"
    ) -> None:
        super().__init__(d_model, is_causal=is_causal)
        if d_model % n_heads:
            raise ShapeError(f"d_model {d_model} is not divided by n_heads {n_heads}; choose a divisor")
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
                return attention(q_BHTK, k_BHTK, v_BHTK, allow_BTS=allow_BTT)[0]
            case _:
                assert_never(self.kernel)

    def multiplications(self, n_positions: int) -> int:
        """4 n d^2 for the projections, 2 n^2 d for scores and values."""
        return 4 * n_positions * self.d_model**2 + 2 * n_positions**2 * self.d_model


class RestrictedSelfAttention(FullSelfAttention):
    """Every position asks those of a neighbourhood of r around it: r n d, n / r links. Section 4.

    Causal, the neighbourhood is the position and the r - 1 before it; else r is odd, and it stands in the middle.

    No (n, n) matrix is made: queries are taken in blocks of r, and each block is shown the at most 2 r - 1 keys that
    its positions may see, so that work and memory grow with r n.
    """

    def __init__(self, d_model: int, *, n_heads: int, r: int, is_causal: bool = False) -> None:
        super().__init__(d_model, n_heads=n_heads, is_causal=is_causal, kernel="reference")
        if r < 1 or (r % 2 == 0 and not is_causal):
            raise ShapeError(f"a neighbourhood with a middle has an odd number of positions, got r = {r}")
        self.r = r

    def reach(self, n_positions: int) -> tuple[int, int]:
        """r - 1 before, or half of that on either side."""
        before, after = (self.r - 1, 0) if self.is_causal else (self.r // 2, self.r // 2)
        return min(before, n_positions - 1), min(after, n_positions - 1)

    def multiplications(self, n_positions: int) -> int:
        """4 n d^2 for the projections; twice d for each key that a block is shown."""
        n_blocks = math.ceil(n_positions / self.r)
        return 4 * n_positions * self.d_model**2 + 2 * n_blocks * self.r * (2 * self.r - 1) * self.d_model

    def _attend(self, q_BHTK: Tensor, k_BHTK: Tensor, v_BHTK: Tensor, is_real_BT: Tensor) -> Tensor:
        n_positions, r = is_real_BT.shape[1], self.r
        before = r - 1 if self.is_causal else r // 2
        after = r - 1 - before
        fill = -n_positions % r  # the last block, filled up
        q_BHCPK = F.pad(q_BHTK, (0, 0, 0, fill)).unfold(2, r, r).transpose(-1, -2)
        k_BHCWK, v_BHCWK = (_windows(x, before, after + fill, r) for x in (k_BHTK, v_BHTK))
        is_real_BCW = F.pad(is_real_BT, (before, after + fill)).unfold(1, 2 * r - 1, r)
        place_P, place_W = torch.arange(r), torch.arange(2 * r - 1)  # in a block, and in its window
        offset_PW = place_W - place_P.unsqueeze(1)
        is_near_PW = ((offset_PW >= 0) & (offset_PW < r)).to(is_real_BT.device)
        allow_BCPW = is_near_PW & is_real_BCW.unsqueeze(2)
        # What fills up has nobody to ask; it asks anything, and nobody reads it.
        allow_BCPW = allow_BCPW | ~allow_BCPW.any(dim=-1, keepdim=True)
        q, k, v = (x.transpose(1, 2).flatten(0, 1) for x in (q_BHCPK, k_BHCWK, v_BHCWK))  # (B * C, H, ., K)
        heads, _ = attention(q, k, v, allow_BTS=allow_BCPW.flatten(0, 1))
        heads_BHCPK = heads.view(len(is_real_BT), -1, *heads.shape[1:]).transpose(1, 2)
        return heads_BHCPK.flatten(2, 3)[:, :, :n_positions]


def _windows(x_BHTK: Tensor, before: int, after: int, r: int) -> Tensor:
    """What each block of r positions is shown, (B, H, C, W, K)."""
    return F.pad(x_BHTK, (0, 0, before, after)).unfold(2, 2 * r - 1, r).transpose(-1, -2)
