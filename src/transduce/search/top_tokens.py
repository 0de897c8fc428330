"""From logits to the most probable next symbols: the only place where search touches the whole vocabulary."""

# N rows, V vocabulary, K symbols kept for each row, C chunks of a row, P places that may be among the K

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.search.processor import LogProbsProcessor, Prefixes

__all__ = ["top_tokens"]

# Log-probabilities of this many entries (4 MB) stay in a processor's cache between log-softmax and top-k. At V = 37,000
# and 256 rows that halves the time; at V = 8,000 it makes no difference.
CPU_BLOCK_ENTRIES = 2**20
CHUNK = 64  # entries that are looked at together; rows with fewer than its square are sorted as a whole


def top_tokens(
    logits_NV: Tensor,
    k: int,
    /,
    *,
    suppressed_ids: Tensor,
    process: LogProbsProcessor | None = None,
    prefixes: Prefixes | None = None,
) -> tuple[Tensor, Tensor]:
    """Log-probabilities and ids, best first, of the ``min(k, V)`` most probable symbols of each row.

    Probabilities are the model's own, over all its classes: forbidden symbols come last with -inf, and nothing is
    shared out among the others. ``process`` may change them, given the ``prefixes`` of the rows, before the best are
    taken. Computed in float32, or in float64 where the logits are.

    >>> logits_NV = torch.tensor([[0.5, 0.25, 0.25]]).log()
    >>> log_probs_NK, ids_NK = top_tokens(logits_NV, 2, suppressed_ids=torch.tensor([0]))
    >>> log_probs_NK.exp().tolist(), ids_NK.tolist()
    ([[0.25, 0.25]], [[1, 2]])
    """
    n_rows, n_classes = logits_NV.shape
    k = min(k, n_classes)
    if process is not None and prefixes is not None:
        return top_k(process(_log_probs(logits_NV, suppressed_ids), prefixes), k)
    on_cpu = logits_NV.device.type == "cpu"
    block_rows = max(1, CPU_BLOCK_ENTRIES // n_classes) if on_cpu else n_rows
    blocks = [top_k(_log_probs(block, suppressed_ids), k) for block in torch.split(logits_NV, block_rows)]
    if len(blocks) == 1:
        return blocks[0]
    return torch.cat([log_probs for log_probs, _ in blocks]), torch.cat([ids for _, ids in blocks])


def _log_probs(logits_NV: Tensor, suppressed_ids: Tensor) -> Tensor:
    dtype = torch.promote_types(logits_NV.dtype, torch.float32)
    return F.log_softmax(logits_NV, dim=-1, dtype=dtype).index_fill_(1, suppressed_ids, -torch.inf)


def top_k(x_NV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The values of ``x_NV.topk(k)`` and where they stand, ties aside; on a CPU in a fraction of its time.

    Each of the k greatest entries is in one of the k chunks with the greatest maxima; only these are sorted.

    >>> values, places = top_k(torch.arange(10_000.0)[None], 2)
    >>> values.tolist(), places.tolist()
    ([[9999.0, 9998.0]], [[9999, 9998]])
    """
    n_chunks = x_NV.shape[1] // CHUNK
    if x_NV.device.type != "cpu" or n_chunks < CHUNK:
        values_NK, places_NK = x_NV.topk(k)
        return values_NK, places_NK
    maxima_NC = x_NV[:, : n_chunks * CHUNK].reshape(-1, n_chunks, CHUNK).amax(dim=2)
    chunks_NK = maxima_NC.topk(min(k, n_chunks)).indices
    places_NP = (chunks_NK.unsqueeze(2) * CHUNK + torch.arange(CHUNK)).flatten(1)
    rest_NP = torch.arange(n_chunks * CHUNK, x_NV.shape[1]).expand(len(x_NV), -1)
    places_NP = torch.cat([places_NP, rest_NP], dim=1)
    values_NK, chosen_NK = x_NV.gather(1, places_NP).topk(k)
    return values_NK, places_NP.gather(1, chosen_NK)
