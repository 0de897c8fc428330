"""Beam search as the authors do it (section 6.1): a pool of alive beams and a pool of finished ones.

A step is a few pure functions over one frozen record: ``_grow`` finds the best continuations, ``_keep_alive`` and
``_keep_finished`` divide them between the pools, ``_is_over`` tells which sentences are over.
"""

# B sentences still searched, W alive beams (1 at first, soon beam_size), N = B * W rows, C candidates (2 * beam_size),
# F finished slots (beam_size), P slots of both, V vocabulary, T symbols so far, the begin symbol included

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.search.arguments import check_arguments, no_hypothesis_error
from transduce.search.hypothesis import Hypothesis
from transduce.search.length_penalty import length_penalty
from transduce.search.processor import LogProbsProcessor, Prefixes
from transduce.search.protocol import StateT, StepFunction
from transduce.search.top_tokens import top_tokens

__all__ = ["beam_search"]


@dataclass(frozen=True, slots=True)
class _Beam:
    """Both pools of every sentence that is still searched, best first. Probability zero marks an empty slot."""

    sentences_B: Tensor  # place of each sentence in the input
    max_lengths_B: Tensor  # most symbols of its output, the end symbol included
    alive_ids_BWT: Tensor
    alive_log_probs_BW: Tensor
    finished_ids_BFT: Tensor  # after its end symbol, a hypothesis has end symbols only
    finished_log_probs_BF: Tensor
    finished_scores_BF: Tensor  # log-probability / length penalty: what this pool is sorted by

    def subset(self, chosen_B: Tensor) -> _Beam:
        """The part with the chosen sentences (a boolean mask)."""
        places_B = chosen_B.nonzero()[:, 0]  # once, not for every field: on a GPU each such count is waited for
        return _Beam(**{field.name: getattr(self, field.name)[places_B] for field in fields(self)})


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The best continuations by one symbol, best first."""

    parents_BC: Tensor  # the alive beam that each continues
    ids_BC: Tensor  # the symbol that it adds
    log_probs_BC: Tensor


@torch.no_grad()
def beam_search(
    step: StepFunction[StateT],
    state: StateT,
    /,
    *,
    max_lengths_B: Tensor,
    beam_size: int,
    alpha: float,
    n_best: int,
    bos_id: int,
    eos_id: int,
    suppressed_ids: Sequence[int],
    process: LogProbsProcessor | None = None,
) -> list[list[Hypothesis]]:
    """At least one and at most ``n_best`` outputs of each sentence, best score first, in the order of the input.

    The authors' algorithm. Of the continuations of the alive beams the ``2 * beam_size`` most probable are candidates.
    Those that end go to the finished pool, which keeps the ``beam_size`` best by log-probability / length penalty; the
    ``beam_size`` best others stay alive. A sentence is over at its limit, or when its best alive beam could not reach
    the ``n_best``-th finished score even if all that it still adds were certain; that bound is exact, since
    log-probabilities only fall and the penalty only grows. Where nothing finished, alive beams are returned.
    The length penalty is ((5 + length) / 6) ** alpha; fairseq's ``length ** alpha`` is another function.

    ``state`` has one row a sentence. ``max_lengths_B`` (int64, on the model's device) is the most symbols that each
    output may have, the end symbol included: a limit of its own, so that no result depends on its neighbours. Symbols in
    ``suppressed_ids`` (padding, begin) are never produced. ``process`` may change the log-probabilities of each step,
    as a constraint does (``Constrained``). Sentences that are over leave the batch at once.

    Raises ValueError for arguments that cannot be right, SearchError where the model gives no probability.

    >>> class Nothing:
    ...     def select(self, rows_BW):
    ...         return self
    >>> after = torch.tensor([[0, 0, 0.6, 0.4], [0, 1, 0, 0], [0, 0.5, 0.5, 0], [0, 1, 0, 0]])
    >>> def step(last_ids_N, state):  # 0 begins, 1 ends; 3 is less probable than 2, but then the end is certain
    ...     return after[last_ids_N].log(), state
    >>> outputs = beam_search(
    ...     step, Nothing(), max_lengths_B=torch.tensor([9]), beam_size=2, alpha=0.0, n_best=2, bos_id=0, eos_id=1,
    ...     suppressed_ids=[0],
    ... )
    >>> [(hypothesis.ids, round(math.exp(hypothesis.log_prob), 2)) for hypothesis in outputs[0]]
    [((3,), 0.4), ((2,), 0.3)]
    """
    check_arguments(max_lengths_B, eos_id=eos_id, suppressed_ids=suppressed_ids, alpha=alpha)
    if not 1 <= n_best <= beam_size:
        raise ValueError(f"n_best must be from 1 to beam_size, got n_best {n_best} and beam_size {beam_size}")
    suppressed = torch.tensor(suppressed_ids, dtype=torch.int64, device=max_lengths_B.device)
    beam = _start(max_lengths_B, beam_size=beam_size, bos_id=bos_id)
    results: dict[int, list[Hypothesis]] = {}
    while len(beam.sentences_B):
        logits_NV, state = step(beam.alive_ids_BWT[:, :, -1].flatten(), state)
        prefixes = _prefixes(beam) if process is not None else None
        top = top_tokens(logits_NV, 2 * beam_size, suppressed_ids=suppressed, process=process, prefixes=prefixes)
        candidates = _grow(beam, *top, beam_size=beam_size)
        beam, rows_BW = _advance(beam, candidates, beam_size=beam_size, alpha=alpha, eos_id=eos_id)
        is_over_B = _is_over(beam, alpha=alpha, n_best=n_best)
        if is_over_B.any():
            results |= _hypotheses(beam.subset(is_over_B), n_best=n_best, eos_id=eos_id)
            beam, rows_BW = beam.subset(~is_over_B), rows_BW[~is_over_B]
        if len(rows_BW):
            state = state.select(rows_BW)
    return [results[sentence] for sentence in range(len(results))]


def _start(max_lengths_B: Tensor, /, *, beam_size: int, bos_id: int) -> _Beam:
    """One alive beam a sentence, which holds the begin symbol, and nothing finished."""
    n_sentences, device = len(max_lengths_B), max_lengths_B.device
    nothing_BF = torch.full((n_sentences, beam_size), -torch.inf, device=device)
    return _Beam(
        sentences_B=torch.arange(n_sentences, device=device),
        max_lengths_B=max_lengths_B,
        alive_ids_BWT=torch.full((n_sentences, 1, 1), bos_id, device=device),
        alive_log_probs_BW=torch.zeros(n_sentences, 1, device=device),
        finished_ids_BFT=torch.full((n_sentences, beam_size, 1), bos_id, device=device),
        finished_log_probs_BF=nothing_BF,
        finished_scores_BF=nothing_BF,
    )


def _prefixes(beam: _Beam, /) -> Prefixes:
    """The alive beams, as rows."""
    return Prefixes(
        beam.sentences_B.repeat_interleave(beam.alive_log_probs_BW.shape[1]),
        beam.alive_ids_BWT.flatten(0, 1),
        beam.alive_log_probs_BW.flatten() > -torch.inf,
    )


def _grow(beam: _Beam, log_probs_NK: Tensor, ids_NK: Tensor, /, *, beam_size: int) -> _Candidates:
    """The best continuations of each sentence: twice the beam, so that enough are left where many of them end.

    All are of one length, so that to rank them by log-probability is to rank them by score.
    """
    n_candidates = 2 * beam_size
    n_sentences, n_beams = beam.alive_log_probs_BW.shape
    n_of_a_beam = ids_NK.shape[1]  # less than n_candidates where the vocabulary is smaller
    log_probs_BWK = beam.alive_log_probs_BW[:, :, None] + log_probs_NK.view(n_sentences, n_beams, -1)
    log_probs_BC, places_BC = log_probs_BWK.flatten(1).topk(min(n_candidates, n_beams * n_of_a_beam))
    return _Candidates(
        parents_BC=places_BC // n_of_a_beam,
        ids_BC=ids_NK.view(n_sentences, -1).gather(1, places_BC),
        log_probs_BC=log_probs_BC,
    )


def _advance(
    beam: _Beam, candidates: _Candidates, /, *, beam_size: int, alpha: float, eos_id: int
) -> tuple[_Beam, Tensor]:
    """Both pools one symbol later, and the row of the state that each new alive beam continues, ``(B, W)``."""
    n_sentences, n_beams = beam.alive_log_probs_BW.shape
    is_end_BC = candidates.ids_BC == eos_id
    alive_ids_BWT, alive_log_probs_BW, parents_BW = _keep_alive(beam, candidates, is_end_BC, beam_size=beam_size)
    finished_ids_BFT, finished_log_probs_BF, finished_scores_BF = _keep_finished(
        beam, candidates, is_end_BC, alpha=alpha, eos_id=eos_id
    )
    first_rows_B1 = torch.arange(0, n_sentences * n_beams, n_beams, device=parents_BW.device)[:, None]
    advanced = replace(
        beam,
        alive_ids_BWT=alive_ids_BWT,
        alive_log_probs_BW=alive_log_probs_BW,
        finished_ids_BFT=finished_ids_BFT,
        finished_log_probs_BF=finished_log_probs_BF,
        finished_scores_BF=finished_scores_BF,
    )
    return advanced, first_rows_B1 + parents_BW


def _keep_alive(
    beam: _Beam, candidates: _Candidates, is_end_BC: Tensor, /, *, beam_size: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, log-probabilities and parents of the best candidates that do not end; fewer where there are not enough."""
    open_log_probs_BC = candidates.log_probs_BC.masked_fill(is_end_BC, -torch.inf)
    log_probs_BW, places_BW = open_log_probs_BC.topk(min(beam_size, open_log_probs_BC.shape[1]))
    parents_BW = candidates.parents_BC.gather(1, places_BW)
    prefixes_BWT = beam.alive_ids_BWT.take_along_dim(parents_BW[:, :, None], dim=1)
    ids_BW1 = candidates.ids_BC.gather(1, places_BW)[:, :, None]
    return torch.cat([prefixes_BWT, ids_BW1], dim=2), log_probs_BW, parents_BW


def _keep_finished(
    beam: _Beam, candidates: _Candidates, is_end_BC: Tensor, /, *, alpha: float, eos_id: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, log-probabilities and scores of the best hypotheses among the finished ones and the candidates that end."""
    n_tokens_of_tree = beam.alive_ids_BWT.shape[2]  # of a candidate: no begin symbol, one more
    new_scores_BC = candidates.log_probs_BC / length_penalty(float(n_tokens_of_tree), alpha=alpha)
    scores_BP = torch.cat([beam.finished_scores_BF, new_scores_BC.masked_fill(~is_end_BC, -torch.inf)], dim=1)
    scores_BF, places_BF = scores_BP.topk(beam.finished_scores_BF.shape[1])
    log_probs_BF = torch.cat([beam.finished_log_probs_BF, candidates.log_probs_BC], dim=1).gather(1, places_BF)
    prefixes_BCT = beam.alive_ids_BWT.take_along_dim(candidates.parents_BC[:, :, None], dim=1)
    ids_BPT = torch.cat([beam.finished_ids_BFT, prefixes_BCT], dim=1)
    ids_BFT = ids_BPT.take_along_dim(places_BF[:, :, None], dim=1)
    return F.pad(ids_BFT, (0, 1), value=eos_id), log_probs_BF, scores_BF


def _is_over(beam: _Beam, /, *, alpha: float, n_best: int) -> Tensor:
    """Which sentences are at their limit, or have ``n_best`` finished hypotheses that none alive can beat; ``(B,)``."""
    greatest_penalty_B = length_penalty(beam.max_lengths_B.to(beam.alive_log_probs_BW.dtype), alpha=alpha)
    reachable_B = beam.alive_log_probs_BW[:, 0] / greatest_penalty_B
    is_at_limit_B = beam.max_lengths_B < beam.alive_ids_BWT.shape[2]
    return is_at_limit_B | (beam.finished_scores_BF[:, n_best - 1] >= reachable_B)


def _hypotheses(beam: _Beam, /, *, n_best: int, eos_id: int) -> dict[int, list[Hypothesis]]:
    """The results of the sentences in ``beam``, which are over, by their place in the input."""
    results = {}
    for sentence, alive_ids_WT, alive_log_probs_W, finished_ids_FT, finished_log_probs_F, finished_scores_F in zip(
        beam.sentences_B.tolist(),
        beam.alive_ids_BWT.tolist(),
        beam.alive_log_probs_BW.tolist(),
        beam.finished_ids_BFT.tolist(),
        beam.finished_log_probs_BF.tolist(),
        beam.finished_scores_BF.tolist(),
        strict=True,
    ):
        finished = [
            Hypothesis(tuple(ids[1 : ids.index(eos_id, 1)]), log_prob, score, is_finished=True)
            for ids, log_prob, score in zip(finished_ids_FT, finished_log_probs_F, finished_scores_F, strict=True)
            if score > -math.inf
        ]
        cut = [
            Hypothesis(tuple(ids[1:]), log_prob, score=log_prob, is_finished=False)
            for ids, log_prob in zip(alive_ids_WT, alive_log_probs_W, strict=True)
            if log_prob > -math.inf
        ]
        if not (finished or cut) or any(map(math.isnan, alive_log_probs_W)):
            raise no_hypothesis_error(sentence, n_tokens_of_tree=beam.alive_ids_BWT.shape[2] - 1)
        results[sentence] = (finished or cut)[:n_best]
    return results
