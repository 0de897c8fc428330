"""What drafts tokens for speculative decoding, and how tokens are chosen from logits.

A draft comes from a smaller model (``ModelDrafter``), or from further output heads of the model itself, which is
blockwise parallel decoding (``HeadsDrafter``; Stern, Shazeer and Uszkoreit, 2018).

Shapes: N rows of the decoding batch, one for each sentence; P drafted tokens of a row, T new tokens of a row;
V vocabulary, X rows that are selected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.search.draft_length import DraftLength
from transduce.search.draws import draw, sampling_log_probs
from transduce.search.protocol import ExtendFunction, RewindableState, RewindableT
from transduce.search.sampling import Sampling
from transduce.search.top_tokens import top_tokens

__all__ = ["Choice", "Drafter", "Drafts", "HeadsDrafter", "ModelDrafter"]

RewindableT_contra = TypeVar("RewindableT_contra", bound=RewindableState, contravariant=True)


@dataclass(frozen=True, slots=True)
class Drafts:
    """Tokens that may follow the last token of each row."""

    ids_NP: Tensor
    n_N: Tensor  # the drafted tokens of each row; what follows them is ignored
    log_probs_NPV: Tensor | None = None  # the distributions that they were drawn from; None: not drawn


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
        ids_NP = F.pad(self._drafts.ids_NP, (0, 1))  # there may be none
        last_draft_N = ids_NP.gather(1, (n_accepted_N - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
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
        """Take the best token of each head."""
        logits_NPV = self._ahead(state) if bool((limits_N > 0).any()) else None
        if logits_NPV is None:
            return Drafts(last_N.new_zeros(len(last_N), 0), torch.zeros_like(limits_N))
        n_ahead = min(logits_NPV.shape[1], int(limits_N.max()))
        flat = logits_NPV[:, :n_ahead].flatten(0, 1)
        ids_NP = choice(flat, torch.ones(len(flat), dtype=torch.bool))[0].view(-1, n_ahead)
        return Drafts(ids_NP, limits_N.clamp(max=n_ahead))

    def accept(self, n_accepted_N: Tensor, is_finished_N: Tensor) -> None:
        """Nothing to do: the model's state has been rewound."""

    def select(self, rows_X: Tensor) -> None:
        """Nothing to do: the model's state has been selected from."""
