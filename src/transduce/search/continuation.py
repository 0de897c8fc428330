"""Sampling after prompts: each token is drawn, whatever the length of the text.

Shapes: N rows of the decoding batch, V vocabulary, X rows that stay in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from transduce.search.compaction import kept_rows
from transduce.search.draws import draw_by, sampling_log_probs
from transduce.search.hypothesis import Hypothesis
from transduce.search.protocol import DecodingState, StateT, StepFunction
from transduce.search.sampling import Sampling

__all__ = ["Draws", "ReadFunction", "sample_continuations"]

# The random numbers, from 0 to 1 (excluded), of some prompts, given by their index; it is called once in every step.
Draws = Callable[[Sequence[int]], Sequence[float]]


StateT_co = TypeVar("StateT_co", bound=DecodingState, covariant=True)


class ReadFunction(Protocol[StateT_co]):
    """How a model begins to read."""

    def __call__(self, rows: Sequence[Sequence[int]], /) -> tuple[Tensor, StateT_co]:
        """Read the ids of each row; return the logits of the next token, (N, V), and the state."""


@torch.no_grad()
def sample_continuations(
    read: ReadFunction[StateT],
    step: StepFunction[StateT],
    prompts: Sequence[Sequence[int]],
    /,
    *,
    max_lengths: Sequence[int],
    eos_id: int,
    suppressed_ids: Sequence[int],
    sampling: Sampling,
    draws: Draws,
    window: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    on_ids: Callable[[int, Sequence[int]], object] = lambda row, ids: None,
) -> list[Hypothesis]:
    """Continue each prompt until EOS or its maximum length, EOS included; return what follows the prompts, in order.

    ``window``: ids that the model reads at most; if
    a text is longer, its window slides by half of that, and is read again. ``should_stop`` is asked before each token;
    if it is true, the texts so far are returned. ``on_ids`` gets the index of a prompt and its new ids, after each.
    """
    outputs: list[list[int]] = [[] for _ in prompts]
    totals = [0.0] * len(prompts)
    texts = [list(prompt) for prompt in prompts]  # what the model has read of each, and the token after it
    rows, is_finished = list(range(len(prompts))), [False] * len(prompts)  # of the batch
    logits_NV, state = read(texts)
    suppressed = torch.tensor(suppressed_ids, dtype=torch.int64, device=logits_NV.device)
    while not should_stop():
        log_probs_NV = sampling_log_probs(logits_NV.index_fill(1, suppressed, -math.inf), sampling)
        ids_N = draw_by(log_probs_NV, draws(rows))
        log_probs_N = log_probs_NV.gather(1, ids_N.unsqueeze(1)).squeeze(1)
        drawn = zip(rows, ids_N.tolist(), log_probs_N.tolist(), strict=True)
        for position, (row, id, log_prob) in enumerate(drawn):
            if not is_finished[position]:
                outputs[row].append(id)
                texts[row].append(id)
                totals[row] += log_prob
                is_finished[position] = id == eos_id or len(outputs[row]) >= max_lengths[row]
                on_ids(row, outputs[row])
        if all(is_finished):
            break
        is_open = [not each for each in is_finished]
        if window is not None and any(
            len(texts[row]) > window for row, each in zip(rows, is_open, strict=True) if each
        ):
            rows = [row for row, each in zip(rows, is_open, strict=True) if each]
            is_finished = [False] * len(rows)
            for row in rows:
                if len(texts[row]) > window:
                    texts[row] = texts[row][-max(1, window // 2) :]
            logits_NV, state = read([texts[row] for row in rows])
            continue
        # With a window, finished rows leave at once: they could grow beyond it.
        staying_X = kept_rows(torch.tensor(is_finished), keep_finished=window is None)
        if staying_X is not None:
            kept = staying_X.tolist()
            rows, is_finished = [rows[position] for position in kept], [is_finished[position] for position in kept]
            staying_X = staying_X.to(ids_N.device)
            ids_N, state = ids_N[staying_X], state.select(staying_X.unsqueeze(1))
        logits_NV, state = step(ids_N, state)
    return [_hypothesis(ids, log_prob, eos_id) for ids, log_prob in zip(outputs, totals, strict=True)]


def _hypothesis(ids: Sequence[int], log_prob: float, eos_id: int) -> Hypothesis:
    is_finished = bool(ids) and ids[-1] == eos_id
    return Hypothesis(tuple(ids[:-1] if is_finished else ids), log_prob, score=log_prob, is_finished=is_finished)
