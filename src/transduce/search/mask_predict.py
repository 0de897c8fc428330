"""Mask-predict: all tokens of an output are predicted at once, and the least probable again, several times.

A conditional masked language model predicts masked tokens from the source and the tokens that are not masked. Decoding
starts with all masked. Iteration t of T masks the n (T - t) / T least probable of n tokens and predicts them again, so
the number of passes does not depend on the length. T = 1 is plain non-autoregressive decoding. Several lengths are
tried side by side, and the output with the greatest mean log-probability is taken. Ghazvininejad et al. (2019).

Shapes: B sentences, R lengths of each, N = B R rows of the decoding batch, T positions, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from transduce.search.arguments import no_hypothesis_error
from transduce.search.hypothesis import Hypothesis
from transduce.search.pass_counts import PassCounts
from transduce.search.top_tokens import top_tokens

__all__ = ["mask_predict"]


@torch.no_grad()
def mask_predict(
    predict: Callable[[Tensor], Tensor],
    lengths_BR: Tensor,
    /,
    *,
    n_iterations: int,
    mask_id: int,
    eos_id: int,
    pad_id: int,
    suppressed_ids: Sequence[int],
    counts: PassCounts | None = None,
) -> list[Hypothesis]:
    """The output of each sentence, in input order.

    ``predict`` takes ids (N, T), padded on the right, of which some are ``mask_id``, and gives logits (N, T, V) of the
    token at each position. ``lengths_BR`` are the numbers of tokens to try for each sentence, EOS left out: at least 1,
    or 0 for a length that is not tried. EOS stands after the last token from the start. A log-probability is the sum of
    those of the tokens when each was last predicted; the score is their mean. ``counts`` are added to.

    Raises ValueError for less than one iteration or length, SearchError if a logit is NaN.

    >>> def predict(ids_NT):  # 5 at the first place, then 6 if it is known what stands before it
    ...     logits_NTV = torch.zeros(*ids_NT.shape, 8)
    ...     logits_NTV[:, 0, 5], logits_NTV[:, 1:, 6] = 4.0, 2.0 * (ids_NT[:, :-1] != 1)
    ...     return logits_NTV
    >>> [best] = mask_predict(
    ...     predict, torch.tensor([[2]]), n_iterations=2, mask_id=1, eos_id=2, pad_id=0, suppressed_ids=[0, 1, 2]
    ... )
    >>> best.ids
    (5, 6)
    """
    if n_iterations < 1:
        raise ValueError(f"n_iterations must be at least 1, got {n_iterations}")
    if lengths_BR.ndim != 2 or bool((lengths_BR.amax(dim=1) < 1).any()):
        raise ValueError(f"lengths_BR must have a length of at least 1 per sentence, got {lengths_BR.tolist()}")
    counts = PassCounts() if counts is None else counts
    device, lengths_N = lengths_BR.device, lengths_BR.flatten()
    suppressed = torch.tensor([*suppressed_ids, eos_id], device=device)
    index_T = torch.arange(int(lengths_N.max()) + 1, device=device)
    is_token_NT = index_T < lengths_N.unsqueeze(1)
    ids_NT = torch.full(is_token_NT.shape, mask_id, device=device)
    ids_NT = ids_NT.masked_fill(~is_token_NT, pad_id).masked_fill(index_T == lengths_N.unsqueeze(1), eos_id)
    log_probs_NT = torch.full(ids_NT.shape, -math.inf, dtype=torch.float64, device=device)
    is_masked_NT = is_token_NT
    for iteration in range(n_iterations):
        if iteration:
            n_masked_N = lengths_N * (n_iterations - iteration) // n_iterations
            rank_NT = log_probs_NT.masked_fill(~is_token_NT, math.inf).argsort(dim=1, stable=True).argsort(dim=1)
            is_masked_NT = (rank_NT < n_masked_N.unsqueeze(1)) & is_token_NT
            if not bool(is_masked_NT.any()):
                break
        logits_NTV = predict(ids_NT.masked_fill(is_masked_NT, mask_id))
        best, best_ids = top_tokens(logits_NTV.flatten(0, 1), 1, suppressed_ids=suppressed)
        log_probs_NT = torch.where(is_masked_NT, best.view(ids_NT.shape).double(), log_probs_NT)
        ids_NT = torch.where(is_masked_NT, best_ids.view(ids_NT.shape), ids_NT)
        counts.passes += len(lengths_BR)
    sums_N = log_probs_NT.masked_fill(~is_token_NT, 0.0).sum(dim=1)
    means_BR = (sums_N / lengths_N.clamp(min=1)).view(lengths_BR.shape).masked_fill(lengths_BR < 1, -math.inf)
    best_B = means_BR.argmax(dim=1)
    results = []
    for sentence, (row, mean) in enumerate(zip(best_B.tolist(), means_BR.amax(dim=1).tolist(), strict=True)):
        number, length = sentence * lengths_BR.shape[1] + row, int(lengths_BR[sentence, row])
        if not math.isfinite(mean):
            raise no_hypothesis_error(sentence, n_tokens=length)
        ids = ids_NT[number, :length].tolist()
        results.append(Hypothesis(tuple(ids), float(sums_N[number]), mean, is_finished=True))
        counts.tokens += length + 1
    counts.sentences += len(results)
    return results
