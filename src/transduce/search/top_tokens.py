"""The most probable next tokens from logits: the only part of search that reads the whole vocabulary.

Shapes: N rows of the decoding batch, V vocabulary, X top tokens of a row, J chunks of a row, P entries searched.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.search.processor import LogProbsProcessor, Prefixes

__all__ = ["log_probabilities", "top_k", "top_tokens"]

# A block of this many log-probabilities (4 MB) stays in the CPU cache between log-softmax and top-k. At V = 37,000 and
# 256 rows that halves the time; at V = 8,000 it makes no difference.
CPU_BLOCK_ENTRIES = 2**20
CHUNK = 64  # entries of a chunk; rows shorter than its square are searched as a whole


def top_tokens(
    logits_NV: Tensor,
    k: int,
    /,
    *,
    suppressed_ids: Tensor,
    process: LogProbsProcessor | None = None,
    prefixes: Prefixes | None = None,
    is_scored: bool = True,
) -> tuple[Tensor, Tensor]:
    """Log-probabilities and ids, (N, X) each, best first, of the X = min(k, V) most probable tokens of each row.

    The softmax is over the whole vocabulary: suppressed tokens get -inf, without renormalisation. ``process`` may
    change the log-probabilities, given the ``prefixes`` of the rows. Computed in fp32, or fp64 for fp64 logits.
    Without ``is_scored`` and ``process``, logits are returned instead; their order is the same except for rounding.

    >>> logits_NV = torch.tensor([[0.5, 0.25, 0.25]]).log()
    >>> log_probs_NX, ids_NX = top_tokens(logits_NV, 2, suppressed_ids=torch.tensor([0]))
    >>> log_probs_NX.exp().tolist(), ids_NX.tolist()
    ([[0.25, 0.25]], [[1, 2]])
    """
    n_rows, vocab_size = logits_NV.shape
    k = min(k, vocab_size)
    if process is not None and prefixes is not None:
        return top_k(process(log_probabilities(logits_NV, suppressed_ids), prefixes), k)
    if not is_scored:
        return _top_logits(logits_NV, k, suppressed_ids)
    on_cpu = logits_NV.device.type == "cpu"
    block_rows = max(1, CPU_BLOCK_ENTRIES // vocab_size) if on_cpu else n_rows
    blocks = [top_k(log_probabilities(block, suppressed_ids), k) for block in torch.split(logits_NV, block_rows)]
    if len(blocks) == 1:
        return blocks[0]
    return torch.cat([log_probs for log_probs, _ in blocks]), torch.cat([ids for _, ids in blocks])


def _top_logits(logits_NV: Tensor, k: int, suppressed_ids: Tensor) -> tuple[Tensor, Tensor]:
    """Logits and ids, (N, X) each, of the k best tokens; searches for more, since suppressed ones may be among them."""
    if k == 1 and len(logits_NV) == 1:  # one sentence at a time: in a quarter of the time
        best_N1, ids_N1 = logits_NV.index_fill(1, suppressed_ids, -torch.inf).max(dim=1, keepdim=True)
        return best_N1, ids_N1
    logits_NP, ids_NP = top_k(logits_NV, min(k + len(suppressed_ids), logits_NV.shape[1]))
    logits_NP = logits_NP.masked_fill(torch.isin(ids_NP, suppressed_ids), -torch.inf)
    if k == 1:  # of equal logits, which are frequent in bf16, that of the smallest id, as for a single row
        best_N1 = logits_NP.amax(dim=1, keepdim=True)
        return best_N1, ids_NP.masked_fill(logits_NP < best_N1, logits_NV.shape[1]).amin(dim=1, keepdim=True)
    logits_NX, indices_NX = logits_NP.topk(k)
    return logits_NX, ids_NP.gather(1, indices_NX)


def log_probabilities(logits_NV: Tensor, suppressed_ids: Tensor) -> Tensor:
    """Return the log-probabilities of all tokens, (N, V); those of suppressed ones are -inf."""
    dtype = torch.promote_types(logits_NV.dtype, torch.float32)
    return F.log_softmax(logits_NV, dim=-1, dtype=dtype).index_fill_(1, suppressed_ids, -torch.inf)


def top_k(x_NV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Values and indices of ``x_NV.topk(k)``, except the order of ties; on a CPU in a fraction of its time.

    Each of the k largest entries is in one of the k chunks with the largest maxima; only these are searched.

    >>> values_NX, indices_NX = top_k(torch.arange(10_000.0)[None], 2)
    >>> values_NX.tolist(), indices_NX.tolist()
    ([[9999.0, 9998.0]], [[9999, 9998]])
    """
    n_chunks = x_NV.shape[1] // CHUNK
    if x_NV.device.type != "cpu" or n_chunks < CHUNK:
        values_NX, indices_NX = x_NV.topk(k)
        return values_NX, indices_NX
    maxima_NJ = x_NV[:, : n_chunks * CHUNK].reshape(-1, n_chunks, CHUNK).amax(dim=2)
    chunks_NX = maxima_NJ.topk(min(k, n_chunks)).indices
    in_chunks_NP = (chunks_NX.unsqueeze(2) * CHUNK + torch.arange(CHUNK)).flatten(1)
    rest_NP = torch.arange(n_chunks * CHUNK, x_NV.shape[1]).expand(len(x_NV), -1)
    indices_NP = torch.cat([in_chunks_NP, rest_NP], dim=1)
    values_NX, top_NX = x_NV.gather(1, indices_NP).topk(k)
    return values_NX, indices_NP.gather(1, top_NX)
