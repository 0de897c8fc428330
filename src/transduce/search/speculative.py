"""Speculative decoding: tokens that are drafted cheaply are verified by one pass of the model.

In each pass the model reads the last token of a row and the drafted tokens after it; so it predicts the token after
each of them. The drafts are kept up to the first that differs from what the model would have written, and the model's
own token follows. With greedy choice the output is that of greedy search, whatever was drafted. With sampling it has
the model's distribution: a draft x of probability q(x) is kept with probability min(1, p(x) / q(x)), and the token
after the last kept one is drawn from max(0, p - q), normalised. Leviathan, Kalman and Matias (2023).

A draft comes from a smaller model (``ModelDrafter``), or from further output heads of the model itself, which is
blockwise parallel decoding (``HeadsDrafter``; Stern, Shazeer and Uszkoreit, 2018).

Shapes: N rows of the decoding batch, one for each sentence; P drafted tokens of a row, T = P + 1 tokens of a pass;
V vocabulary, X rows that are selected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from transduce.search.arguments import check_arguments
from transduce.search.compaction import kept_rows
from transduce.search.greedy import greedy_hypothesis
from transduce.search.hypothesis import Hypothesis
from transduce.search.protocol import ExtendFunction, RewindableState, RewindableT
from transduce.search.sampling import Sampling, draw, sampling_log_probs
from transduce.search.top_tokens import top_tokens

__all__ = [
    "Choice", "DraftLength", "Drafter", "Drafts", "HeadsDrafter", "ModelDrafter", "PassCounts", "speculative_search",
]  # fmt: skip


RewindableT_contra = TypeVar("RewindableT_contra", bound=RewindableState, contravariant=True)


@dataclass(slots=True)
class PassCounts:
    """How many passes of a model a search needed. Searches add to it."""

    sentences: int = 0
    passes: int = 0  # summed over the sentences that took part in each
    tokens: int = 0  # written, EOS included
    drafted: int = 0
    accepted: int = 0  # of the drafted tokens

    @property
    def passes_per_sentence(self) -> float:
        """Passes of the model for a sentence; NaN without sentences."""
        return self.passes / self.sentences if self.sentences else math.nan

    @property
    def tokens_per_pass(self) -> float:
        """Tokens that a pass adds to a sentence: 1 without drafts."""
        return self.tokens / self.passes if self.passes else math.nan


@dataclass(frozen=True, slots=True)
class Drafts:
    """Tokens that may follow the last token of each row."""

    ids_NP: Tensor
    n_N: Tensor  # the drafted tokens of each row; what follows them is ignored
    log_probs_NPV: Tensor | None = None  # the distributions that they were drawn from; None: not drawn


@dataclass(frozen=True, slots=True)
class DraftLength:
    """Where the draft of a smaller model ends: after ``n_tokens``, or after a token that it is not sure of.

    That is one with less than ``min_probability``; what would follow it is likely to be rejected. 0: never.
    Raises ValueError for less than one token, or a probability outside of 0 to 1.
    """

    n_tokens: int
    min_probability: float = 0.0

    def __post_init__(self) -> None:
        if self.n_tokens < 1:
            raise ValueError(f"a draft should have at least 1 token, got {self.n_tokens}")
        if not 0 <= self.min_probability <= 1:
            raise ValueError(f"a probability of drafted tokens is from 0 to 1, got {self.min_probability}")


@dataclass(frozen=True, slots=True)
class Choice:
    """How tokens are chosen from logits: the most probable one, or a draw of each row's own generator."""

    suppressed: Tensor  # ids that are never chosen
    sampling: Sampling | None = None  # None: the most probable
    generators: list[torch.Generator] = field(default_factory=list)  # of the rows; on the CPU

    def select(self, rows: Sequence[int]) -> Choice:
        """The choice of the selected rows."""
        return replace(self, generators=[self.generators[row] for row in rows] if self.generators else [])

    def log_probs(self, logits_NV: Tensor) -> Tensor | None:
        """The log-probabilities (N, V) that are drawn from, in float64; None if nothing is drawn."""
        if self.sampling is None:
            return None
        return sampling_log_probs(logits_NV.double().index_fill(1, self.suppressed, -math.inf), self.sampling)

    def __call__(self, logits_NV: Tensor, is_needed_N: Tensor) -> tuple[Tensor, Tensor | None]:
        """The chosen ids (N,), and the log-probabilities that they were drawn from; only needed rows draw."""
        log_probs_NV = self.log_probs(logits_NV)
        if log_probs_NV is None:
            return top_tokens(logits_NV, 1, suppressed_ids=self.suppressed, is_scored=False)[1][:, 0], None
        needed_X = is_needed_N.nonzero()[:, 0]
        ids_N = torch.zeros_like(is_needed_N, dtype=torch.int64)
        if len(needed_X):
            ids_N[needed_X] = draw(log_probs_NV[needed_X], [self.generators[row] for row in needed_X.tolist()])
        return ids_N, log_probs_NV


class Drafter(Protocol[RewindableT_contra]):
    """What drafts tokens. It follows the search from pass to pass."""

    def propose(self, last_N: Tensor, state: RewindableT_contra, limits_N: Tensor, choice: Choice, /) -> Drafts:
        """Draft at most ``limits_N`` tokens after the last token of each row.

        ``state`` is that of the model, which has read everything before the last token.
        """

    def accept(self, n_accepted_N: Tensor, is_finished_N: Tensor, /) -> None:
        """Learn how many drafts of each row were kept; finished rows stay as they were before the pass."""

    def select(self, rows_X: Tensor, /) -> None:
        """Keep the selected rows."""


class ModelDrafter(Generic[RewindableT]):
    """Drafts by a smaller model, token by token, up to EOS."""

    def __init__(
        self, extend: ExtendFunction[RewindableT], state: RewindableT, *, length: DraftLength, eos_id: int
    ) -> None:
        """``state``: the initial state of the smaller model, one row per sentence."""
        self._extend, self._state, self._eos_id = extend, state, eos_id
        self.length = length
        self._before_last_N: Tensor | None = None  # the last draft of each row, if it was not read and was kept
        self._n_unread_N: Tensor | None = None  # 1: the last token; 2: the token before it, too; None: 1 in all rows
        self._drafts = Drafts(torch.empty(0, 0), torch.empty(0))
        self._n_read = 0  # drafts that were read in this round

    def propose(self, last_N: Tensor, state: RewindableT, limits_N: Tensor, choice: Choice) -> Drafts:
        """Read what is new in each row, and draft up to EOS, the limit, or an improbable token."""
        limits_N = limits_N.clamp(max=self.length.n_tokens)
        n_steps, is_open_N = int(limits_N.max()), limits_N > 0
        ids, log_probs, n_N = list[Tensor](), list[Tensor](), torch.zeros_like(limits_N)
        logits_NV = self._read_new(last_N)
        self._n_read = 0
        while len(ids) < n_steps:
            ids_N, log_probs_NV = choice(logits_NV, is_open_N)
            if log_probs_NV is None:  # the model writes EOS itself, without a draft
                is_open_N = is_open_N & (ids_N != self._eos_id)
                if not bool(is_open_N.any()):
                    break
                n_N = n_N + is_open_N
            else:  # a drawn EOS is verified: to leave it out would change the distribution
                log_probs.append(log_probs_NV)
                n_N = n_N + is_open_N
                is_open_N = is_open_N & (ids_N != self._eos_id)
            ids.append(ids_N)
            is_open_N = is_open_N & (n_N < limits_N)
            if self.length.min_probability > 0 and len(ids) < n_steps:
                is_probable_N = _probabilities(ids_N, logits_NV, log_probs_NV) >= self.length.min_probability
                is_open_N = is_open_N & is_probable_N
            if not bool(is_open_N.any()):
                break
            logits_NTV, self._state = self._extend(ids_N.unsqueeze(1), self._state)
            logits_NV = logits_NTV[:, 0]
            self._n_read += 1
        ids_NP = torch.stack(ids, dim=1) if ids else last_N.new_zeros(len(last_N), 0)
        self._drafts = Drafts(ids_NP, n_N, torch.stack(log_probs, dim=1) if log_probs else None)
        return self._drafts

    def _read_new(self, last_N: Tensor) -> Tensor:
        """Read the tokens of each row that are new to this model; the logits (N, V) after them."""
        if self._before_last_N is None or self._n_unread_N is None:
            logits_NTV, self._state = self._extend(last_N.unsqueeze(1), self._state)
            return logits_NTV[:, 0]
        before_N, n_N = self._before_last_N, self._n_unread_N
        if bool((n_N == 2).all()):
            logits_NTV, self._state = self._extend(torch.stack((before_N, last_N), dim=1), self._state)
            return logits_NTV[:, 1]
        ids_NT = torch.stack((torch.where(n_N == 2, before_N, last_N), last_N), dim=1)
        logits_NTV, self._state = self._extend(ids_NT, self._state, n_N)
        return logits_NTV[torch.arange(len(n_N), device=n_N.device), n_N - 1]

    def accept(self, n_accepted_N: Tensor, is_finished_N: Tensor) -> None:
        """Rewind past the rejected drafts. If all were kept, the last one has not been read yet."""
        n_kept_N = n_accepted_N.clamp(max=self._n_read)
        n_first_N = torch.ones_like(n_kept_N) if self._n_unread_N is None else self._n_unread_N
        n_back_N = self._n_read - n_kept_N
        # A finished row only fills the batch: it takes back all that it has read, and reads it again.
        n_back_N = torch.where(is_finished_N, self._n_read + n_first_N, n_back_N)
        if bool(n_back_N.any()):
            self._state = self._state.rewind(n_back_N)
        n_unread_N = 1 + (n_accepted_N > n_kept_N).long()
        n_unread_N = torch.where(is_finished_N, n_first_N, n_unread_N)
        if not bool((n_unread_N == 2).any()):
            self._before_last_N = self._n_unread_N = None
            return
        last_draft_N = self._drafts.ids_NP.gather(1, (n_accepted_N - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
        before_N = last_draft_N if self._before_last_N is None else self._before_last_N
        self._before_last_N = torch.where(is_finished_N, before_N, last_draft_N)
        self._n_unread_N = n_unread_N

    def select(self, rows_X: Tensor) -> None:
        """Keep the selected rows."""
        self._state = self._state.select(rows_X[:, None])
        if self._before_last_N is not None and self._n_unread_N is not None:
            self._before_last_N, self._n_unread_N = self._before_last_N[rows_X], self._n_unread_N[rows_X]


def _probabilities(ids_N: Tensor, logits_NV: Tensor, log_probs_NV: Tensor | None) -> Tensor:
    """The probability (N,) of each row's token: in the distribution that it was drawn from, or in the model's."""
    probs_NV = logits_NV.softmax(dim=1) if log_probs_NV is None else log_probs_NV.exp()
    return probs_NV.gather(1, ids_N.unsqueeze(1)).squeeze(1)


class HeadsDrafter(Generic[RewindableT]):
    """Drafts by further output heads of the model itself, which predict the tokens after the next one.

    ``ahead`` gives the logits (N, P, V) of the tokens after the next one from the model's state; None before the first
    pass.
    """

    def __init__(self, ahead: Callable[[RewindableT], Tensor | None]) -> None:
        self._ahead = ahead

    def propose(self, last_N: Tensor, state: RewindableT, limits_N: Tensor, choice: Choice) -> Drafts:
        """Take the best token, or a draw, of each head."""
        logits_NPV = self._ahead(state) if bool((limits_N > 0).any()) else None
        if logits_NPV is None:
            return Drafts(last_N.new_zeros(len(last_N), 0), torch.zeros_like(limits_N))
        n_ahead = min(logits_NPV.shape[1], int(limits_N.max()))
        n_N = limits_N.clamp(max=n_ahead)
        if choice.sampling is None:
            flat = logits_NPV[:, :n_ahead].flatten(0, 1)
            ids_NP = choice(flat, torch.ones(len(flat), dtype=torch.bool))[0].view(-1, n_ahead)
            return Drafts(ids_NP, n_N)
        chosen = [choice(logits_NPV[:, index], index < n_N) for index in range(n_ahead)]
        log_probs = [log_probs_NV for _, log_probs_NV in chosen if log_probs_NV is not None]
        return Drafts(torch.stack([ids_N for ids_N, _ in chosen], dim=1), n_N, torch.stack(log_probs, dim=1))

    def accept(self, n_accepted_N: Tensor, is_finished_N: Tensor) -> None:
        """Nothing to do: the model's state has been rewound."""

    def select(self, rows_X: Tensor) -> None:
        """Nothing to do: the model's state has been selected from."""


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
    alpha: float = 0.0,
    is_scored: bool = True,
    counts: PassCounts | None = None,
) -> list[Hypothesis]:
    """The greedy hypothesis of each sentence, or a sampled one, in input order.

    The arguments are those of ``greedy_search``; ``extend`` reads several tokens of each row at once, and the states
    can be rewound. Without a ``drafter`` each pass writes one token. With ``sampling``, each sentence draws from its
    own generator (on the CPU): its output does not depend on the rest of the batch. Suppressed tokens have probability
    zero, and the others are renormalised. ``counts`` are added to.

    Raises ValueError for invalid arguments, SearchError if a logit is NaN or no allowed token has probability above 0.

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
    check_arguments(max_lengths_B, eos_id=eos_id, suppressed_ids=suppressed_ids, alpha=alpha)
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
                hypothesis = greedy_hypothesis(
                    outputs[sentence], totals[sentence], sentence, eos_id=eos_id, alpha=alpha
                )
                results[sentence] = hypothesis if is_scored else replace(hypothesis, log_prob=math.nan, score=math.nan)
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
