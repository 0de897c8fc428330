"""Greedy search: the most probable token at every step.

Shapes: B sentences of the batch, X those that stay in it, T tokens so far including BOS, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.search.arguments import check_arguments, no_hypothesis_error
from transduce.search.compaction import kept_rows
from transduce.search.hypothesis import Hypothesis
from transduce.search.length_penalty import NO_PENALTY, LengthPenalty
from transduce.search.processor import LogProbsProcessor, Prefixes
from transduce.search.protocol import StateT, StepFunction
from transduce.search.top_tokens import top_tokens

__all__ = ["greedy_hypothesis", "greedy_search"]


@torch.no_grad()
def greedy_search(
    step: StepFunction[StateT],
    state: StateT,
    /,
    *,
    max_lengths_B: Tensor,
    bos_id: int,
    eos_id: int,
    suppressed_ids: Sequence[int],
    penalty: LengthPenalty = NO_PENALTY,
    process: LogProbsProcessor | None = None,
    is_scored: bool = True,
) -> list[Hypothesis]:
    """The greedy hypothesis of each sentence, in input order.

    The arguments are those of ``beam_search``; ``penalty`` affects only the reported score. Without ``is_scored``, the
    log-probabilities and scores are NaN; this saves the softmax over the vocabulary.

    Beam search with beam_size 1 is a different search: it keeps the best finished hypothesis and continues until none
    can be better, so (without a penalty) its output is at least as probable as the greedy one.

    Raises ValueError for invalid arguments, SearchError if a logit is NaN or no allowed token has probability above 0.

    >>> class NoState:
    ...     def select(self, rows_BW):
    ...         return self
    >>> def step(last_ids_N, state):  # 2 follows 0 (BOS), 1 (EOS) follows 2
    ...     return torch.tensor([[0.0, 0.3, 0.7], [0.0, 1.0, 0.0], [0.0, 0.6, 0.4]])[last_ids_N].log(), state
    >>> [best] = greedy_search(step, NoState(), max_lengths_B=torch.tensor([9]), bos_id=0, eos_id=1, suppressed_ids=[0])
    >>> best.ids, round(math.exp(best.log_prob), 2)
    ((2,), 0.42)
    """
    check_arguments(max_lengths_B, eos_id=eos_id, suppressed_ids=suppressed_ids)
    suppressed = torch.tensor(suppressed_ids, dtype=torch.int64, device=max_lengths_B.device)
    n_sentences = len(max_lengths_B)
    sentences_B = torch.arange(n_sentences, device=max_lengths_B.device)
    ids_BT = torch.full((n_sentences, 1), bos_id, device=max_lengths_B.device)
    log_probs_B = torch.zeros(n_sentences, device=max_lengths_B.device)
    is_finished_B = torch.zeros_like(sentences_B, dtype=torch.bool)
    results: dict[int, Hypothesis] = {}
    while len(results) < n_sentences:
        logits_BV, state = step(ids_BT[:, -1], state)
        prefixes = Prefixes(sentences_B, ids_BT, log_probs_B > -torch.inf) if process is not None else None
        log_probs_B1, ids_B1 = top_tokens(
            logits_BV, 1, suppressed_ids=suppressed, process=process, prefixes=prefixes, is_scored=is_scored
        )
        log_probs_B = log_probs_B + log_probs_B1[:, 0]
        is_new_B = ((ids_B1[:, 0] == eos_id) | (max_lengths_B <= ids_BT.shape[1])) & ~is_finished_B
        ids_BT = torch.cat([ids_BT, ids_B1], dim=1)
        if is_new_B.any():
            done = zip(sentences_B[is_new_B].tolist(), ids_BT[is_new_B], log_probs_B[is_new_B].tolist(), strict=True)
            for sentence, ids_T, log_prob in done:
                results[sentence] = greedy_hypothesis(
                    ids_T[1:].tolist(), log_prob, sentence, eos_id=eos_id, penalty=penalty, is_scored=is_scored
                )
            is_finished_B = is_finished_B | is_new_B
            staying_X = kept_rows(is_finished_B, keep_finished=process is None)
            if staying_X is not None and len(staying_X):
                per_sentence = (sentences_B, max_lengths_B, ids_BT, log_probs_B, is_finished_B)
                sentences_B, max_lengths_B, ids_BT, log_probs_B, is_finished_B = (x[staying_X] for x in per_sentence)
                state = state.select(staying_X[:, None])
    return [results[sentence] for sentence in range(len(results))]


def greedy_hypothesis(
    ids: list[int], log_prob: float, sentence: int, /, *, eos_id: int, penalty: LengthPenalty, is_scored: bool
) -> Hypothesis:
    """The hypothesis of the ids that were written, EOS included. Raises SearchError for a probability of 0 or NaN."""
    if not math.isfinite(log_prob):
        raise no_hypothesis_error(sentence, n_tokens=len(ids))
    log_prob = log_prob if is_scored else math.nan
    if ids[-1] != eos_id:
        return Hypothesis(tuple(ids), log_prob, score=log_prob, is_finished=False)
    return Hypothesis(tuple(ids[:-1]), log_prob, log_prob / penalty(float(len(ids))), True)
