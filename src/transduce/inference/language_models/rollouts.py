"""Rollouts: responses sampled from the policy, with all that does not change while it is trained on them.

Shapes: B sequences (responses), X those still in the batch, Y of these those that stay, T positions, V vocabulary, D
d_model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from transduce.data import pad_rows
from transduce.inference.language_models.sequences import log_probs_of
from transduce.search.compaction import kept_rows
from transduce.text import EOS_ID

__all__ = ["Rater", "last_states", "rewards_of", "sample_responses"]

Ids = Sequence[int]
# Scores of responses (EOS included, if they have an end) to prompts (BOS included), (B,).
Rater = Callable[[Sequence[Ids], Sequence[Ids]], Tensor]


@torch.no_grad()
def sample_responses(
    model: Any,
    prompts: Sequence[Ids],
    *,
    max_tokens: int,
    temperature: float,
    blocked_ids: Sequence[int],
    generator: torch.Generator,
) -> list[list[int]]:
    """Draw a response to each prompt, until EOS or for ``max_tokens``; EOS is part of a finished response.

    Rows are drawn from one generator on the CPU, by the inverse of the cumulative distribution. It gives numbers for
    all rows at every step, so that no draw depends on which others have ended.
    """
    device = model.output.weight.device
    lengths_B = torch.tensor([len(prompt) for prompt in prompts], device=device)
    n_new_B = None if len(set(lengths_B.tolist())) == 1 else lengths_B
    logits_BTV, state = model.extend(pad_rows(prompts).to(device), model.start(len(prompts)), n_new_B)
    logits_XV = logits_BTV[torch.arange(len(prompts), device=device), lengths_B - 1]
    last_id = max(set(range(logits_XV.shape[1])) - set(blocked_ids))
    responses: list[list[int]] = [[] for _ in prompts]
    rows_X = torch.arange(len(prompts))
    is_open_X = torch.ones(len(prompts), dtype=torch.bool)
    for n_drawn in range(1, max_tokens + 1):
        log_probs_XV = log_probs_of(logits_XV, temperature=temperature, blocked_ids=blocked_ids)
        cumulative_XV = log_probs_XV.double().exp().cumsum(dim=1).cpu()
        uniform_X1 = torch.rand(len(prompts), 1, generator=generator, dtype=torch.float64)[rows_X]
        ids_X1 = torch.searchsorted(cumulative_XV, uniform_X1 * cumulative_XV[:, -1:], right=True)
        ids_X = ids_X1.squeeze(1).clamp(max=last_id)
        for row, id, is_open in zip(rows_X.tolist(), ids_X.tolist(), is_open_X.tolist(), strict=True):
            if is_open:
                responses[row].append(id)
        is_open_X = is_open_X & (ids_X != EOS_ID)
        if n_drawn == max_tokens or not is_open_X.any():
            break
        staying_Y = kept_rows(~is_open_X, keep_finished=True)
        if staying_Y is not None:
            state = state.select(staying_Y[:, None].to(device))
            ids_X, rows_X, is_open_X = ids_X[staying_Y], rows_X[staying_Y], is_open_X[staying_Y]
        logits_XV, state = model.step(ids_X.to(device), state)
    return responses


def last_states(model: Any, prompts: Sequence[Ids], responses: Sequence[Ids], device: torch.device) -> Tensor:
    """Return the states of a causal model at the last token of each response, (B, D)."""
    rows = [[*prompt, *response] for prompt, response in zip(prompts, responses, strict=True)]
    states_ND: Tensor = model(pad_rows(rows).to(device))
    ends_B = torch.tensor([len(row) for row in rows], device=device).cumsum(dim=0) - 1
    return states_ND.index_select(0, ends_B)


def rewards_of(model: Any, prompts: Sequence[Ids], responses: Sequence[Ids]) -> Tensor:
    """Return the rewards that a reward model gives at the last token of each response, (B,)."""
    device = next(model.parameters()).device
    rewards_B: Tensor = model.output.logits(last_states(model, prompts, responses, device)).float()
    return rewards_B
