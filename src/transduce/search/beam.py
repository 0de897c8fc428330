"""Beam search with the authors' algorithm (section 6.1): a pool of alive beams and a pool of finished hypotheses.

Each step is a few pure functions over one frozen record: ``_expand`` finds the best candidates, ``_update_alive`` and
``_update_finished`` sort them into the pools, ``_is_done`` finds the sentences whose search is done.

Shapes: B sentences of the batch, W alive beams (1 at the first step and beam_size later), N = B W rows of the decoding
batch, V vocabulary, X top tokens of a row or sentences that are selected, P candidates (2 * beam_size), R finished
hypotheses (beam_size), J = R + P, Y phrases of a sentence, T tokens so far including BOS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.search.arguments import check_arguments, no_hypothesis_error
from transduce.search.compaction import kept_rows
from transduce.search.hypothesis import Hypothesis
from transduce.search.length_penalty import LengthPenalty
from transduce.search.phrases import WantedPhrases
from transduce.search.processor import LogProbsProcessor, Prefixes
from transduce.search.protocol import StateT, StepFunction
from transduce.search.top_tokens import log_probabilities, top_k, top_tokens

__all__ = ["beam_search"]


@dataclass(frozen=True, slots=True)
class _Beam:
    """Both pools of every sentence of the batch, best first. Log-probability -inf marks an empty entry."""

    sentences_B: Tensor  # index of each sentence in the input
    max_lengths_B: Tensor  # maximum output length, EOS included
    alive_ids_BWT: Tensor
    alive_log_probs_BW: Tensor
    may_end_BW: Tensor  # whether an alive beam has all that it must have
    finished_ids_BRT: Tensor  # filled with EOS after a hypothesis's own EOS
    finished_log_probs_BR: Tensor
    finished_scores_BR: Tensor  # log-probability / length penalty; this pool's sort key

    def select(self, indices_X: Tensor) -> _Beam:
        """Some of the sentences."""
        return _Beam(**{field.name: getattr(self, field.name)[indices_X] for field in fields(self)})


@dataclass(frozen=True, slots=True)
class _Candidates:
    """One-token extensions of the alive beams."""

    parents_BP: Tensor  # index of the alive beam that each extends
    ids_BP: Tensor  # the token that it appends
    log_probs_BP: Tensor
    order_BP: Tensor  # by what those that stay alive are chosen, the greatest first
    may_end_BP: Tensor


@torch.no_grad()
def beam_search(
    step: StepFunction[StateT],
    state: StateT,
    /,
    *,
    max_lengths_B: Tensor,
    beam_size: int,
    penalty: LengthPenalty,
    n_best: int,
    bos_id: int,
    eos_id: int,
    suppressed_ids: Sequence[int],
    process: LogProbsProcessor | None = None,
    phrases: WantedPhrases | None = None,
) -> list[list[Hypothesis]]:
    """The n-best list of each sentence, in input order: 1 to ``n_best`` hypotheses, best score first.

    The ``2 * beam_size`` most probable one-token extensions of the alive beams are candidates. Those that end with EOS
    enter the finished pool, which keeps the ``beam_size`` best by log-probability / length penalty; the ``beam_size``
    best others stay alive. A sentence is done at its maximum length, or when its best alive beam cannot exceed the
    ``n_best``-th finished score; nothing better is lost, since log-probabilities only fall and the penalty only grows.
    If no hypothesis is finished, the alive beams are returned.

    ``state`` has one row per sentence. ``max_lengths_B`` (int64, on the model's device) is the maximum length of each
    output, EOS included; it is per sentence, so that no result depends on the rest of the batch. Tokens in
    ``suppressed_ids`` (padding, BOS) are never generated. ``process`` may change the log-probabilities of each step, as
    a constraint does (``Constrained``). With ``phrases``, a hypothesis ends only when it has them all, or
    when nothing but EOS is possible. Finished
    sentences leave the batch (``compaction.py``).

    Raises ValueError for invalid arguments, SearchError if a logit is NaN or every allowed token has probability zero.

    >>> class NoState:
    ...     def select(self, rows_BW):
    ...         return self
    >>> next_probs = torch.tensor([[0, 0, 0.6, 0.4], [0, 1, 0, 0], [0, 0.5, 0.5, 0], [0, 1, 0, 0]])
    >>> def step(last_ids_N, state):  # 0 is BOS, 1 is EOS; 3 is less probable than 2, but then EOS is certain
    ...     return next_probs[last_ids_N].log(), state
    >>> outputs = beam_search(
    ...     step, NoState(), max_lengths_B=torch.tensor([9]), beam_size=2, penalty=LengthPenalty(), n_best=2,
    ...     bos_id=0, eos_id=1, suppressed_ids=[0],
    ... )
    >>> [(hypothesis.ids, round(math.exp(hypothesis.log_prob), 2)) for hypothesis in outputs[0]]
    [((3,), 0.4), ((2,), 0.3)]
    """
    check_arguments(max_lengths_B, eos_id=eos_id, suppressed_ids=suppressed_ids)
    if not 1 <= n_best <= beam_size:
        raise ValueError(f"n_best must be from 1 to beam_size, got n_best {n_best} and beam_size {beam_size}")
    suppressed = torch.tensor(suppressed_ids, dtype=torch.int64, device=max_lengths_B.device)
    beam = _start(max_lengths_B, beam_size=beam_size, bos_id=bos_id)
    is_finished_B = torch.zeros_like(max_lengths_B, dtype=torch.bool)
    results: dict[int, list[Hypothesis]] = {}
    while len(results) < len(max_lengths_B):
        logits_NV, state = step(beam.alive_ids_BWT[:, :, -1].flatten(), state)
        prefixes = _prefixes(beam) if process is not None else None
        if phrases is None:
            top = top_tokens(logits_NV, 2 * beam_size, suppressed_ids=suppressed, process=process, prefixes=prefixes)
            candidates = _expand(beam, *top, beam_size=beam_size)
        else:
            log_probs_NV = log_probabilities(logits_NV, suppressed)
            if process is not None and prefixes is not None:
                log_probs_NV = process(log_probs_NV, prefixes)
            candidates = _expand_to_phrases(beam, log_probs_NV, phrases, beam_size=beam_size, eos_id=eos_id)
        beam, rows_BW = _advance(beam, candidates, beam_size=beam_size, penalty=penalty, eos_id=eos_id)
        is_new_B = _is_done(beam, penalty=penalty, n_best=n_best) & ~is_finished_B
        if is_new_B.any():
            results |= _hypotheses(beam.select(is_new_B.nonzero()[:, 0]), n_best=n_best, eos_id=eos_id)
            is_finished_B = is_finished_B | is_new_B
            staying_X = kept_rows(is_finished_B, keep_finished=process is None)
            if staying_X is not None:
                beam, rows_BW, is_finished_B = beam.select(staying_X), rows_BW[staying_X], is_finished_B[staying_X]
        if len(results) < len(max_lengths_B):
            state = state.select(rows_BW)
    return [results[sentence] for sentence in range(len(results))]


def _start(max_lengths_B: Tensor, /, *, beam_size: int, bos_id: int) -> _Beam:
    """The initial pools: one alive beam per sentence, BOS, and no finished hypothesis."""
    n_sentences, device = len(max_lengths_B), max_lengths_B.device
    empty_BR = torch.full((n_sentences, beam_size), -torch.inf, device=device)
    return _Beam(
        sentences_B=torch.arange(n_sentences, device=device),
        max_lengths_B=max_lengths_B,
        alive_ids_BWT=torch.full((n_sentences, 1, 1), bos_id, device=device),
        alive_log_probs_BW=torch.zeros(n_sentences, 1, device=device),
        may_end_BW=torch.ones(n_sentences, 1, dtype=torch.bool, device=device),
        finished_ids_BRT=torch.full((n_sentences, beam_size, 1), bos_id, device=device),
        finished_log_probs_BR=empty_BR,
        finished_scores_BR=empty_BR,
    )


def _prefixes(beam: _Beam, /) -> Prefixes:
    """The alive beams as rows of the decoding batch."""
    return Prefixes(
        beam.sentences_B.repeat_interleave(beam.alive_log_probs_BW.shape[1]),
        beam.alive_ids_BWT.flatten(0, 1),
        beam.alive_log_probs_BW.flatten() > -torch.inf,
    )


def _expand(beam: _Beam, log_probs_NX: Tensor, ids_NX: Tensor, /, *, beam_size: int) -> _Candidates:
    """The best candidates of each sentence: 2 * beam_size, so that beam_size are left even if beam_size end with EOS.

    All have the same length, so the order by log-probability is the order by score.
    """
    n_candidates = 2 * beam_size
    n_sentences, n_beams = beam.alive_log_probs_BW.shape
    n_per_beam = ids_NX.shape[1]  # below n_candidates if the vocabulary is smaller
    log_probs_BWX = beam.alive_log_probs_BW[:, :, None] + log_probs_NX.view(n_sentences, n_beams, -1)
    log_probs_BP, indices_BP = log_probs_BWX.flatten(1).topk(min(n_candidates, n_beams * n_per_beam))
    return _Candidates(
        parents_BP=indices_BP // n_per_beam,
        ids_BP=ids_NX.view(n_sentences, -1).gather(1, indices_BP),
        log_probs_BP=log_probs_BP,
        order_BP=log_probs_BP,
        may_end_BP=torch.ones_like(log_probs_BP, dtype=torch.bool),
    )


def _expand_to_phrases(
    beam: _Beam, log_probs_NV: Tensor, phrases: WantedPhrases, /, *, beam_size: int, eos_id: int
) -> _Candidates:
    """The candidates of ``_expand``, those that go on with a phrase, and the best of each alive beam.

    Those that stay alive are shared out by what they have of the phrases.
    """
    (n_sentences, n_beams), vocab_size = beam.alive_log_probs_BW.shape, log_probs_NV.shape[1]
    progress_BWY = phrases.progress(beam.sentences_B, beam.alive_ids_BWT)
    may_end_BW = phrases.are_complete(beam.sentences_B, progress_BWY)
    is_forced_N = (log_probs_NV > -torch.inf).sum(1) < 2  # EOS, too
    log_probs_NV[:, eos_id].masked_fill_(~may_end_BW.flatten() & ~is_forced_N, -torch.inf)
    top_log_probs_NX, top_ids_NX = top_k(log_probs_NV, min(2 * beam_size, vocab_size))
    best = _expand(beam, top_log_probs_NX, top_ids_NX, beam_size=beam_size)
    more_BWX = torch.cat(
        [top_ids_NX.view(n_sentences, n_beams, -1)[:, :, :1], phrases.next_ids(beam.sentences_B, progress_BWY)], dim=2
    )
    more_log_probs_BWX = log_probs_NV.view(n_sentences, n_beams, -1).gather(2, more_BWX.clamp(min=0))
    more_log_probs_BWX = more_log_probs_BWX.masked_fill(more_BWX < 0, -torch.inf) + beam.alive_log_probs_BW[:, :, None]
    parents_BWX = torch.arange(n_beams, device=more_BWX.device)[:, None].expand_as(more_BWX)
    parents_BP = torch.cat([best.parents_BP, parents_BWX.flatten(1)], dim=1)
    ids_BP = torch.cat([best.ids_BP, more_BWX.clamp(min=0).flatten(1)], dim=1)  # -1: no token
    log_probs_BP = torch.cat([best.log_probs_BP, more_log_probs_BWX.flatten(1)], dim=1)
    numbers_BP = parents_BP * vocab_size + ids_BP
    is_twice_BP = (numbers_BP[:, :, None] == numbers_BP[:, None, :]).tril(-1).any(dim=2)
    log_probs_BP = log_probs_BP.masked_fill(is_twice_BP, -torch.inf)
    extended_BPT = beam.alive_ids_BWT.take_along_dim(parents_BP[:, :, None], dim=1)
    progress_BPY = phrases.progress(beam.sentences_B, torch.cat([extended_BPT, ids_BP[:, :, None]], dim=2))
    alive_log_probs_BP = log_probs_BP.masked_fill(ids_BP == eos_id, -torch.inf)
    return _Candidates(
        parents_BP,
        ids_BP,
        log_probs_BP,
        order_BP=phrases.order(beam.sentences_B, progress_BPY, alive_log_probs_BP),
        may_end_BP=phrases.are_complete(beam.sentences_B, progress_BPY),
    )


def _advance(
    beam: _Beam, candidates: _Candidates, /, *, beam_size: int, penalty: LengthPenalty, eos_id: int
) -> tuple[_Beam, Tensor]:
    """Both pools after one more token, and the state's row that each new alive beam extends, ``(B, W)``."""
    n_sentences, n_beams = beam.alive_log_probs_BW.shape
    is_eos_BP = candidates.ids_BP == eos_id
    alive_ids_BWT, alive_log_probs_BW, may_end_BW, parents_BW = _update_alive(
        beam, candidates, is_eos_BP, beam_size=beam_size
    )
    finished_ids_BRT, finished_log_probs_BR, finished_scores_BR = _update_finished(
        beam, candidates, is_eos_BP, penalty=penalty, eos_id=eos_id
    )
    first_rows_B1 = torch.arange(0, n_sentences * n_beams, n_beams, device=parents_BW.device)[:, None]
    advanced = replace(
        beam,
        alive_ids_BWT=alive_ids_BWT,
        alive_log_probs_BW=alive_log_probs_BW,
        may_end_BW=may_end_BW,
        finished_ids_BRT=finished_ids_BRT,
        finished_log_probs_BR=finished_log_probs_BR,
        finished_scores_BR=finished_scores_BR,
    )
    return advanced, first_rows_B1 + parents_BW


def _update_alive(
    beam: _Beam, candidates: _Candidates, is_eos_BP: Tensor, /, *, beam_size: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The ``beam_size`` best candidates without EOS (all, if there are fewer).

    Returned are ids, log-probabilities, whether they may end, and parents.
    """
    order_BP = candidates.order_BP.masked_fill(is_eos_BP, -torch.inf)
    order_BW, indices_BW = order_BP.topk(min(beam_size, order_BP.shape[1]))
    log_probs_BW = candidates.log_probs_BP.gather(1, indices_BW).masked_fill(order_BW == -torch.inf, -torch.inf)
    parents_BW = candidates.parents_BP.gather(1, indices_BW)
    prefixes_BWT = beam.alive_ids_BWT.take_along_dim(parents_BW[:, :, None], dim=1)
    ids_BW1 = candidates.ids_BP.gather(1, indices_BW)[:, :, None]
    return (
        torch.cat([prefixes_BWT, ids_BW1], dim=2),
        log_probs_BW,
        candidates.may_end_BP.gather(1, indices_BW),
        parents_BW,
    )


def _update_finished(
    beam: _Beam, candidates: _Candidates, is_eos_BP: Tensor, /, *, penalty: LengthPenalty, eos_id: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, log-probabilities and scores of the best hypotheses of the finished pool and the candidates with EOS."""
    length = beam.alive_ids_BWT.shape[2]  # of a candidate, without BOS
    new_scores_BP = candidates.log_probs_BP / penalty(float(length))
    scores_BJ = torch.cat([beam.finished_scores_BR, new_scores_BP.masked_fill(~is_eos_BP, -torch.inf)], dim=1)
    scores_BR, indices_BR = scores_BJ.topk(beam.finished_scores_BR.shape[1])
    log_probs_BR = torch.cat([beam.finished_log_probs_BR, candidates.log_probs_BP], dim=1).gather(1, indices_BR)
    prefixes_BPT = beam.alive_ids_BWT.take_along_dim(candidates.parents_BP[:, :, None], dim=1)
    ids_BJT = torch.cat([beam.finished_ids_BRT, prefixes_BPT], dim=1)
    ids_BRT = ids_BJT.take_along_dim(indices_BR[:, :, None], dim=1)
    return F.pad(ids_BRT, (0, 1), value=eos_id), log_probs_BR, scores_BR


def _is_done(beam: _Beam, /, *, penalty: LengthPenalty, n_best: int) -> Tensor:
    """(B,): whether a sentence is at its maximum length, or its alive beams cannot beat ``n_best`` finished ones.

    If some of these may end, those that may not yet do not count.
    """
    max_penalty_B = penalty(beam.max_lengths_B.to(beam.alive_log_probs_BW.dtype))
    ending_BW = beam.alive_log_probs_BW.masked_fill(~beam.may_end_BW, -torch.inf)
    best_B, best_ending_B = beam.alive_log_probs_BW.amax(dim=1), ending_BW.amax(dim=1)
    bound_B = torch.where(best_ending_B > -torch.inf, best_ending_B, best_B) / max_penalty_B
    is_at_max_length_B = beam.max_lengths_B < beam.alive_ids_BWT.shape[2]
    return is_at_max_length_B | (beam.finished_scores_BR[:, n_best - 1] >= bound_B)


def _hypotheses(beam: _Beam, /, *, n_best: int, eos_id: int) -> dict[int, list[Hypothesis]]:
    """The n-best lists of the sentences in ``beam``, which are done, by their index in the input."""
    results = {}
    for sentence, alive_ids_WT, alive_log_probs_W, finished_ids_RT, finished_log_probs_R, finished_scores_R in zip(
        beam.sentences_B.tolist(),
        beam.alive_ids_BWT.tolist(),
        beam.alive_log_probs_BW.tolist(),
        beam.finished_ids_BRT.tolist(),
        beam.finished_log_probs_BR.tolist(),
        beam.finished_scores_BR.tolist(),
        strict=True,
    ):
        finished = [
            Hypothesis(tuple(ids[1 : ids.index(eos_id, 1)]), log_prob, score, is_finished=True)
            for ids, log_prob, score in zip(finished_ids_RT, finished_log_probs_R, finished_scores_R, strict=True)
            if score > -math.inf
        ]
        unfinished = [
            Hypothesis(tuple(ids[1:]), log_prob, score=log_prob, is_finished=False)
            for ids, log_prob in zip(alive_ids_WT, alive_log_probs_W, strict=True)
            if log_prob > -math.inf
        ]
        if not (finished or unfinished) or any(map(math.isnan, alive_log_probs_W)):
            raise no_hypothesis_error(sentence, n_tokens=beam.alive_ids_BWT.shape[2] - 1)
        results[sentence] = (finished or unfinished)[:n_best]
    return results
