"""From logits to the most probable next symbols: the only place where search touches the whole vocabulary."""

# N rows, V vocabulary, K symbols kept for each row

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["top_tokens"]

# Log-probabilities of this many entries (4 MB) stay in a processor's cache between log-softmax and top-k. At V = 37,000
# and 256 rows that halves the time; at V = 8,000 it makes no difference.
CPU_BLOCK_ENTRIES = 2**20


def top_tokens(logits_NV: Tensor, k: int, /, *, forbidden_ids: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities and ids, best first, of the ``min(k, V)`` most probable symbols of each row.

    Probabilities are the model's own, over all its classes: forbidden symbols come last with -inf, and nothing is
    shared out among the others. Computed in float32, or in float64 where the logits are.

    >>> logits_NV = torch.tensor([[0.5, 0.25, 0.25]]).log()
    >>> log_probs_NK, ids_NK = top_tokens(logits_NV, 2, forbidden_ids=torch.tensor([0]))
    >>> log_probs_NK.exp().tolist(), ids_NK.tolist()
    ([[0.25, 0.25]], [[1, 2]])
    """
    n_rows, n_classes = logits_NV.shape
    on_cpu = logits_NV.device.type == "cpu"
    block_rows = max(1, CPU_BLOCK_ENTRIES // n_classes) if on_cpu else n_rows
    blocks = [_top_of_block(block, min(k, n_classes), forbidden_ids) for block in torch.split(logits_NV, block_rows)]
    if len(blocks) == 1:
        return blocks[0]
    return torch.cat([log_probs for log_probs, _ in blocks]), torch.cat([ids for _, ids in blocks])


def _top_of_block(logits_NV: Tensor, k: int, forbidden_ids: Tensor) -> tuple[Tensor, Tensor]:
    dtype = torch.promote_types(logits_NV.dtype, torch.float32)
    log_probs_NV = F.log_softmax(logits_NV, dim=-1, dtype=dtype).index_fill_(1, forbidden_ids, -torch.inf)
    log_probs_NK, ids_NK = log_probs_NV.topk(k)
    return log_probs_NK, ids_NK
