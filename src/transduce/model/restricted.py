"""Restricted self-attention, in blocks: each position attends to a neighbourhood of r positions. Section 4.

Queries are grouped in blocks of r, and each block attends to the window of the keys that its queries may see: itself
and a neighbourhood's reach on each side. So time and memory grow with r n; no (n, n) matrix is computed.

Shapes: B sentences, T positions, S key positions, H heads, K d_k, U d_v, X blocks of a sentence, P query positions of a
block, Y key positions of its window, N = B X blocks of the batch.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["band_mask", "reach", "restricted_attention"]

# Attention of the blocks: queries (N, H, P, K), keys (N, H, Y, K), values (N, H, Y, U), mask (N, P, Y) to (N, H, P, U).
BlockAttention = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def reach(r: int, *, is_causal: bool) -> tuple[int, int]:
    """How many positions a position sees before and after itself.

    >>> reach(5, is_causal=False), reach(5, is_causal=True)
    ((2, 2), (4, 0))
    """
    return (r - 1, 0) if is_causal else (r // 2, r - 1 - r // 2)


def band_mask(n_positions: int, r: int, *, is_causal: bool, device: torch.device) -> Tensor:
    """The mask (1, T, T) of restricted attention: the definition, for short sentences and tests.

    >>> band_mask(3, 2, is_causal=True, device=torch.device("cpu"))[0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    before, after = reach(r, is_causal=is_causal)
    everywhere_TT = torch.ones(n_positions, n_positions, dtype=torch.bool, device=device)
    return everywhere_TT.tril(after).triu(-before).unsqueeze(0)


def restricted_attention(
    q_BHTK: Tensor,
    k_BHTK: Tensor,
    v_BHTU: Tensor,
    *,
    r: int,
    is_causal: bool,
    is_key_BT: Tensor | None,
    attend: BlockAttention,
) -> Tensor:
    """Attention of each position to its neighbourhood, (B, H, T, U).

    The neighbourhood is the position and the r - 1 before it if ``is_causal``, else r positions with it in the centre.
    ``is_key_BT`` is False where nothing may attend, at padding; None allows every position. What a query without any
    allowed key gives is undefined.
    """
    n_sentences, n_positions = q_BHTK.shape[0], q_BHTK.shape[2]
    n_block = min(r, n_positions)
    before, after = (min(n, n_positions - 1) for n in reach(r, is_causal=is_causal))
    n_window, n_extra = before + n_block + after, -n_positions % n_block  # the last block is filled up with padding

    def blocks(x_BHTK: Tensor, before: int, after: int, size: int) -> Tensor:
        """Overlapping parts of ``size`` positions, one for each block: (N, H, size, K)."""
        padded = F.pad(x_BHTK, (0, 0, before, after + n_extra))
        return padded.unfold(2, size, n_block).permute(0, 2, 1, 4, 3).flatten(0, 1)

    q_NHPK = blocks(q_BHTK, 0, 0, n_block)
    k_NHYK, v_NHYU = (blocks(x, before, after, n_window) for x in (k_BHTK, v_BHTU))
    if is_key_BT is None:
        is_key_BT = torch.ones(1, n_positions, dtype=torch.bool, device=q_BHTK.device).expand(n_sentences, -1)
    is_key_BXY = F.pad(is_key_BT, (before, after + n_extra)).unfold(1, n_window, n_block)
    index_P = torch.arange(n_block, device=q_BHTK.device)
    index_Y = torch.arange(n_window, device=q_BHTK.device)
    offset_PY = index_Y - index_P.unsqueeze(1)  # of a key, from the first of its query's neighbourhood
    allow_BXPY = ((offset_PY >= 0) & (offset_PY <= before + after)) & is_key_BXY.unsqueeze(2)
    # Queries at padding may have no allowed key: they attend to all keys, since their outputs are ignored.
    allow_BXPY = allow_BXPY | ~allow_BXPY.any(dim=-1, keepdim=True)
    heads_NHPU = attend(q_NHPK, k_NHYK, v_NHYU, allow_BXPY.flatten(0, 1))
    heads_BHXPU = heads_NHPU.view(n_sentences, -1, *heads_NHPU.shape[1:]).transpose(1, 2)
    return heads_BHXPU.flatten(2, 3)[:, :, :n_positions]
