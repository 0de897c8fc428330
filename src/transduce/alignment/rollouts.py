"""Rollouts: responses sampled from the policy, with all that does not change while it is trained on them.

Shapes: B sequences (responses), T positions, R tokens of the longest response, V vocabulary, D d_model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from transduce.alignment.sequences import log_probs_of
from transduce.data import pad_rows
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

    All rows are drawn from one generator on the CPU, by the inverse of the cumulative distribution.
    """
    device = model.output.weight.device
    lengths_B = torch.tensor([len(prompt) for prompt in prompts], device=device)
    n_new_B = None if len(set(lengths_B.tolist())) == 1 else lengths_B
    logits_BTV, state = model.extend(pad_rows(prompts).to(device), model.start(len(prompts)), n_new_B)
    logits_BV = logits_BTV[torch.arange(len(prompts), device=device), lengths_B - 1]
    is_open_B = torch.ones(len(prompts), dtype=torch.bool)
    drawn: list[Tensor] = []
    while True:
        log_probs_BV = log_probs_of(logits_BV, temperature=temperature, blocked_ids=blocked_ids)
        cumulative_BV = log_probs_BV.double().exp().cumsum(dim=1).cpu()
        uniform_B1 = torch.rand(len(prompts), 1, generator=generator, dtype=torch.float64)
        ids_B1 = torch.searchsorted(cumulative_BV, uniform_B1 * cumulative_BV[:, -1:], right=True)
        last_B1 = (log_probs_BV > -math.inf).cpu().long().cumsum(dim=1).argmax(dim=1, keepdim=True)  # can be drawn
        ids_B = torch.minimum(ids_B1, last_B1).squeeze(1)
        drawn.append(torch.where(is_open_B, ids_B, -1))
        is_open_B &= ids_B != EOS_ID
        if len(drawn) == max_tokens or not is_open_B.any():
            break
        logits_BV, state = model.step(ids_B.to(device), state)
    return [[id for id in row if id >= 0] for row in torch.stack(drawn, dim=1).tolist()]


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
