"""Advantages: by how much a token, or a response, was better than expected.

Shapes: B sequences (responses), T tokens of a response, padded on the right; P prompts, J responses to each.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["generalised_advantages", "leave_one_out_advantages"]


def generalised_advantages(
    rewards_BT: Tensor, values_BT: Tensor, mask_BT: Tensor, *, gamma: float, gae_lambda: float
) -> Tensor:
    """Return the generalised advantage estimates; 0 at padding. Schulman et al. (2016), equation 16.

    A_t = delta_t + gamma lambda A_(t+1) with delta_t = r_t + gamma V_(t+1) - V_t; after the last token V and A are 0.

    >>> mask_BT = torch.tensor([[True, True, False]])
    >>> rewards_BT, values_BT = torch.tensor([[0.0, 1.0, 0.0]]), torch.tensor([[0.5, 0.25, 7.0]])
    >>> generalised_advantages(rewards_BT, values_BT, mask_BT, gamma=1.0, gae_lambda=1.0).tolist()
    [[0.5, 0.75, 0.0]]
    """
    values_BT = values_BT * mask_BT
    next_value_B = torch.zeros_like(values_BT[:, 0])
    advantage_B = torch.zeros_like(next_value_B)
    advantages: list[Tensor] = []
    for t in reversed(range(rewards_BT.shape[1])):
        delta_B = rewards_BT[:, t] + gamma * next_value_B - values_BT[:, t]
        advantage_B = (delta_B + gamma * gae_lambda * advantage_B) * mask_BT[:, t]
        next_value_B = values_BT[:, t]
        advantages.append(advantage_B)
    return torch.stack(advantages[::-1], dim=1)


def leave_one_out_advantages(returns_PJ: Tensor) -> Tensor:
    """Return each return minus the mean of the other responses to its prompt. Ahmadian et al. (2024).

    The baseline does not depend on the response itself, so that the gradient stays unbiased.

    >>> leave_one_out_advantages(torch.tensor([[1.0, 2.0, 6.0]])).tolist()
    [[-3.0, -1.5, 4.5]]
    """
    n = returns_PJ.shape[1]
    others_PJ = (returns_PJ.sum(dim=1, keepdim=True) - returns_PJ) / (n - 1)
    return returns_PJ - others_PJ
