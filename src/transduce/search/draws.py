"""Draws of the next token of each row, from the model's distribution, reshaped by temperature, top-k, top-p.

Shapes: N rows of the decoding batch, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.search.sampling import Sampling

__all__ = ["draw", "draw_by", "sampling_log_probs"]


def sampling_log_probs(logits_NV: Tensor, sampling: Sampling) -> Tensor:
    """Return the log-probabilities that are sampled from, (N, V), in at least fp32.

    Temperature first, then the k most probable, then the fewest of these that have the probability ``top_p``; ties at
    the last place go to the lower ids.

    >>> logits_1V = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
    >>> sampling_log_probs(logits_1V, Sampling(top_k=2)).exp().round(decimals=2).tolist()
    [[0.73..., 0.27..., 0.0, 0.0]]
    """
    logits_NV = logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32))
    if sampling.temperature == 0:
        best_N1 = logits_NV.argmax(dim=1, keepdim=True)
        return torch.full_like(logits_NV, -math.inf).scatter_(1, best_N1, 0.0)
    log_probs_NV = (logits_NV / sampling.temperature).log_softmax(dim=1)
    if sampling.top_k is None and sampling.top_p is None:
        return log_probs_NV
    sorted_NV, order_NV = log_probs_NV.sort(dim=1, descending=True, stable=True)
    is_kept_NV = torch.ones_like(sorted_NV, dtype=torch.bool)
    if sampling.top_k is not None:
        is_kept_NV[:, sampling.top_k :] = False
    if sampling.top_p is not None:
        kept_NV = sorted_NV.masked_fill(~is_kept_NV, -math.inf).softmax(dim=1)
        is_kept_NV &= kept_NV.cumsum(dim=1) - kept_NV < sampling.top_p  # the probability of those before it
    blocked_NV = torch.zeros_like(is_kept_NV).scatter_(1, order_NV, ~is_kept_NV)
    return log_probs_NV.masked_fill_(blocked_NV, -math.inf).log_softmax(dim=1)


def draw(log_probs_NV: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
    """Draw a token of each row, (N,), with a generator of its own: a row's draws do not depend on the other rows."""
    return draw_by(log_probs_NV, [float(torch.rand((), generator=each, dtype=torch.float64)) for each in generators])


def draw_by(log_probs_NV: Tensor, uniform_N: Sequence[float]) -> Tensor:
    """Choose a token of each row, (N,), by a random number from 0 to 1, 1 excluded.

    By the inverse of the cumulative distribution, in the order of the ids.
    """
    uniform_N1 = torch.tensor(uniform_N, dtype=torch.float64).unsqueeze(1)
    cumulative_NV = log_probs_NV.double().cpu().exp().cumsum(dim=1)
    last_N1 = (
        (log_probs_NV > -math.inf).cpu().long().cumsum(dim=1).argmax(dim=1, keepdim=True)
    )  # of positive probability
    ids_N1 = torch.searchsorted(cumulative_NV, uniform_N1 * cumulative_NV[:, -1:], right=True)
    return torch.minimum(ids_N1, last_N1).squeeze(1).to(log_probs_NV.device)
