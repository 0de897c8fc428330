"""Speculative decoding: tokens that are drafted cheaply are verified by one pass of the model.

In each pass the model reads the last token of a row and the drafted tokens after it; so it predicts the token after
each of them. The drafts are kept up to the first that differs from what the model would have written, and the model's
own token follows. With greedy choice the output is that of greedy search, whatever was drafted. With sampling it has
the model's distribution: a draft x of probability q(x) is kept with probability min(1, p(x) / q(x)), and the token
after the last kept one is drawn from max(0, p - q), normalised. Leviathan, Kalman and Matias (2023).

Shapes: N rows of the decoding batch, one for each sentence; P drafted tokens of a row, T = P + 1 tokens of a pass;
V vocabulary, X rows that are selected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.search.arguments import check_arguments
from transduce.search.compaction import kept_rows
from transduce.search.drafting import Choice, Drafter, Drafts
from transduce.search.draws import draw
from transduce.search.greedy import greedy_hypothesis
from transduce.search.hypothesis import Hypothesis
from transduce.search.length_penalty import NO_PENALTY, LengthPenalty
from transduce.search.pass_counts import PassCounts
from transduce.search.protocol import ExtendFunction, RewindableT
from transduce.search.sampling import Sampling
from transduce.search.top_tokens import top_tokens

__all__ = ["speculative_search"]


@torch.no_grad()
def speculative_search(
    extend: ExtendFunction[RewindableT],
    state: RewindableT,
    /,
    *,
    drafter: Drafter[RewindableT] | None,
    max_lengths_B: Tensor,
    bos_id: int,
    eos_id: int,
    suppressed_ids: Sequence[int],
    sampling: Sampling | None = None,
    generators: Sequence[torch.Generator] = (),
    penalty: LengthPenalty = NO_PENALTY,
    is_scored: bool = True,
    counts: PassCounts | None = None,
) -> list[Hypothesis]:
    """The greedy hypothesis of each sentence, or a sampled one, in input order.

    The arguments are those of ``greedy_search``; ``extend`` reads several tokens of each row at once, and the states
    can be rewound. Without a ``drafter`` each pass writes one token. With ``sampling``, each sentence draws from its
    own generator (on the CPU): its output does not depend on the rest of the batch. Suppressed tokens have probability
    zero, and the others are renormalised. ``counts`` are added to.

    Raises ValueError for invalid arguments, SearchError if a logit is NaN or no allowed token has probability above 0.

    >>> from transduce.search import DraftLength, ModelDrafter
    >>> class NoState:
    ...     def select(self, rows_BW):
    ...         return self
    ...     def rewind(self, n_N):
    ...         return self
    >>> def extend(ids_NT, state, n_new_N=None):  # 2 follows 0 (BOS), 1 (EOS) follows 2
    ...     return torch.tensor([[0.0, 0.3, 0.7], [0.0, 1.0, 0.0], [0.0, 0.6, 0.4]])[ids_NT].log(), state
    >>> counts, drafter = PassCounts(), ModelDrafter(extend, NoState(), length=DraftLength(3), eos_id=1)
    >>> [best] = speculative_search(
    ...     extend, NoState(), drafter=drafter, max_lengths_B=torch.tensor([9]), bos_id=0, eos_id=1,
    ...     suppressed_ids=[0], counts=counts,
    ... )
    >>> best.ids, round(math.exp(best.log_prob), 2), counts.passes
    ((2,), 0.42, 1)
    """
    check_arguments(max_lengths_B, eos_id=eos_id, suppressed_ids=suppressed_ids)
    n_sentences, device = len(max_lengths_B), max_lengths_B.device
    if sampling is not None and len(generators) != n_sentences:
        raise ValueError(f"sampling needs a generator for each of {n_sentences} sentences, got {len(generators)}")
    counts = PassCounts() if counts is None else counts
    counts.sentences += n_sentences
    suppressed = torch.tensor(suppressed_ids, dtype=torch.int64, device=device)
    choice = Choice(suppressed, sampling, list(generators))
    max_lengths = max_lengths_B.tolist()
    sentences = list(range(n_sentences))  # of the rows
    outputs: list[list[int]] = [[] for _ in sentences]  # of the sentences
    totals = [0.0] * n_sentences
    results: dict[int, Hypothesis] = {}
    last_N = torch.full((n_sentences,), bos_id, device=device)
    left_N = max_lengths_B  # tokens that each row may still write
    is_finished_N = torch.zeros_like(max_lengths_B, dtype=torch.bool)
    while len(results) < n_sentences:
        limits_N = (left_N - 1).masked_fill(is_finished_N, 0)
        drafts = _no_drafts(last_N) if drafter is None else drafter.propose(last_N, state, limits_N, choice)
        n_tokens = drafts.ids_NP.shape[1] + 1
        n_new_N = None if bool((drafts.n_N == n_tokens - 1).all()) else drafts.n_N + 1
        logits_NTV, state = extend(torch.cat((last_N.unsqueeze(1), drafts.ids_NP), dim=1), state, n_new_N)
        new_NT, n_accepted_N, log_probs_NT = _verify(logits_NTV, drafts, choice, is_scored, ~is_finished_N)
        counts_of_rows = zip(
            sentences, new_NT.tolist(), n_accepted_N.tolist(), drafts.n_N.tolist(), log_probs_NT.tolist(),
            is_finished_N.tolist(), strict=True,
        )  # fmt: skip
        is_new = [False] * len(sentences)
        for row, (sentence, new, n_accepted, n_drafted, log_probs, is_finished) in enumerate(counts_of_rows):
            if is_finished:
                continue
            new = new[: n_accepted + 1]
            if eos_id in new:
                new = new[: new.index(eos_id) + 1]
            outputs[sentence] += new
            totals[sentence] += math.fsum(log_probs[: len(new)])
            counts.passes += 1
            counts.tokens += len(new)
            counts.drafted += n_drafted
            counts.accepted += min(n_accepted, len(new))
            if new[-1] == eos_id or len(outputs[sentence]) >= max_lengths[sentence]:
                is_new[row] = True
                results[sentence] = greedy_hypothesis(
                    outputs[sentence], totals[sentence], sentence, eos_id=eos_id, penalty=penalty, is_scored=is_scored
                )
        if len(results) == n_sentences:
            break
        is_finished_N = is_finished_N | torch.tensor(is_new, device=device)
        # A finished row that stays in the batch takes back all that it has read.
        n_back_N = torch.where(is_finished_N, drafts.n_N + 1, drafts.n_N - n_accepted_N)
        if bool(n_back_N.any()):
            state = state.rewind(n_back_N)
        if drafter is not None:
            drafter.accept(n_accepted_N, is_finished_N)
        next_N = new_NT.gather(1, n_accepted_N.unsqueeze(1)).squeeze(1)
        last_N = torch.where(is_finished_N, last_N, next_N)
        left_N = left_N - n_accepted_N - 1
        staying_X = kept_rows(is_finished_N, keep_finished=True) if any(is_new) else None
        if staying_X is not None:
            last_N, left_N, is_finished_N = last_N[staying_X], left_N[staying_X], is_finished_N[staying_X]
            rows = staying_X.tolist()
            sentences, choice = [sentences[row] for row in rows], choice.select(rows)
            state = state.select(staying_X[:, None])
            if drafter is not None:
                drafter.select(staying_X)
    return [results[sentence] for sentence in range(n_sentences)]


def _no_drafts(last_N: Tensor) -> Drafts:
    return Drafts(last_N.new_zeros(len(last_N), 0), torch.zeros_like(last_N))


def _verify(
    logits_NTV: Tensor, drafts: Drafts, choice: Choice, is_scored: bool, is_needed_N: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The new tokens of each row (N, T), how many of them are drafts that were kept, and the tokens' log-probabilities.

    The token after the kept ones is the model's own; what follows it is undefined.
    """
    if choice.sampling is not None:
        return _verify_draws(logits_NTV, drafts, choice, is_needed_N)
    n_rows, n_tokens, _ = logits_NTV.shape
    log_probs_X1, ids_X1 = top_tokens(
        logits_NTV.flatten(0, 1), 1, suppressed_ids=choice.suppressed, is_scored=is_scored
    )
    best_NT = ids_X1.view(n_rows, n_tokens)
    index_P = torch.arange(n_tokens - 1, device=best_NT.device)
    is_kept_NP = (best_NT[:, :-1] == drafts.ids_NP) & (index_P < drafts.n_N.unsqueeze(1))
    return best_NT, is_kept_NP.long().cumprod(dim=1).sum(dim=1), log_probs_X1.view(n_rows, n_tokens)


def _verify_draws(
    logits_NTV: Tensor, drafts: Drafts, choice: Choice, is_needed_N: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """``_verify`` for sampling, row by row: each draws from its own generator, and only as much as it needs."""
    n_rows, n_tokens, _ = logits_NTV.shape
    log_p = choice.log_probs(logits_NTV.flatten(0, 1))
    assert log_p is not None
    log_p_NTV = log_p.view(n_rows, n_tokens, -1).cpu()
    log_q_NPV = None if drafts.log_probs_NPV is None else drafts.log_probs_NPV.cpu()
    new = [[*drafted, 0] for drafted in drafts.ids_NP.tolist()]
    n_accepted, log_probs = [0] * n_rows, [[0.0] * n_tokens for _ in range(n_rows)]
    for row, (n_drafted, is_needed) in enumerate(zip(drafts.n_N.tolist(), is_needed_N.tolist(), strict=True)):
        if not is_needed:
            continue
        generator, log_p_TV, n_kept, residual_V = choice.generators[row], log_p_NTV[row], 0, None
        while n_kept < n_drafted:
            assert log_q_NPV is not None
            token, log_q_V = new[row][n_kept], log_q_NPV[row, n_kept]
            ratio = math.exp(min(0.0, float(log_p_TV[n_kept, token] - log_q_V[token])))
            if float(torch.rand((), generator=generator, dtype=torch.float64)) >= ratio:
                residual_V = (log_p_TV[n_kept].exp() - log_q_V.exp()).clamp(min=0.0)
                break
            log_probs[row][n_kept] = float(log_p_TV[n_kept, token])
            n_kept += 1
        log_from_V = log_p_TV[n_kept] if residual_V is None or not bool(residual_V.any()) else residual_V.log()
        own = int(draw(log_from_V.unsqueeze(0), [generator]))
        new[row][n_kept], n_accepted[row] = own, n_kept
        log_probs[row][n_kept] = float(log_p_TV[n_kept, own])
    device = logits_NTV.device
    return (
        torch.tensor(new, device=device),
        torch.tensor(n_accepted, device=device),
        torch.tensor(log_probs, dtype=torch.float64),
    )
