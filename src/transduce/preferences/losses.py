"""The losses of alignment, one function for each formula.

Shapes: B sequences (responses), T tokens of a response, padded on the right; J responses of a ranking, P pairs.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.preferences.rewards import masked_mean

__all__ = [
    "centring_losses", "clipped_policy_loss", "clipped_value_loss", "dpo_losses", "pairs_of_ranking", "ranking_losses",
    "reinforce_loss",
]  # fmt: skip


def pairs_of_ranking(n_responses: int, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Return the places of the better and the worse response of each of the K choose 2 pairs, both (P,).

    >>> [places.tolist() for places in pairs_of_ranking(3)]
    [[0, 0, 1], [1, 2, 2]]
    """
    better_P, worse_P = torch.triu_indices(n_responses, n_responses, offset=1, device=device)
    return better_P, worse_P


def ranking_losses(rewards_J: Tensor) -> Tensor:
    """Return - log sigmoid(r_w - r_l) of all pairs, (P,), for the rewards of a ranking, the best response first.

    Binary classification with the model of Bradley and Terry. Ouyang et al. (2022), equation 1.
    """
    better_P, worse_P = pairs_of_ranking(len(rewards_J), rewards_J.device)
    return -F.logsigmoid(rewards_J[better_P] - rewards_J[worse_P])


def centring_losses(rewards_J: Tensor) -> Tensor:
    """Return (r_w + r_l)^2 of all pairs, (P,).

    Rankings say nothing of rewards of different prompts; this draws them all towards 0, so that a policy's reward does
    not vary with its prompt. Eisenstein et al. (2023).
    """
    better_P, worse_P = pairs_of_ranking(len(rewards_J), rewards_J.device)
    return (rewards_J[better_P] + rewards_J[worse_P]).square()


def dpo_losses(log_ratios_J: Tensor, *, beta: float) -> Tensor:
    """Return the losses of direct preference optimisation of all pairs, (P,). Rafailov et al. (2023), equation 7.

    ``log_ratios_J``: log(pi / pi_ref) of each response of a ranking, the best first. Beta times it is the reward that
    the policy implies.
    """
    return ranking_losses(beta * log_ratios_J)


def clipped_policy_loss(
    log_probs_BT: Tensor, old_log_probs_BT: Tensor, advantages_BT: Tensor, mask_BT: Tensor, *, clip: float
) -> tuple[Tensor, Tensor]:
    """Return - mean min(rho A, clip(rho, 1 - eps, 1 + eps) A), and the share of tokens that are clipped.

    rho = pi / pi_old. Schulman et al. (2017), equation 7.
    """
    ratios_BT = ((log_probs_BT - old_log_probs_BT) * mask_BT).exp()
    losses_BT = -advantages_BT * ratios_BT
    clipped_BT = -advantages_BT * ratios_BT.clamp(1 - clip, 1 + clip)
    share = masked_mean((clipped_BT > losses_BT).to(losses_BT.dtype), mask_BT)
    return masked_mean(torch.maximum(losses_BT, clipped_BT), mask_BT), share.detach()


def clipped_value_loss(
    values_BT: Tensor, old_values_BT: Tensor, returns_BT: Tensor, mask_BT: Tensor, *, clip: float
) -> Tensor:
    """Return half the mean of max((V - R)^2, (V_clipped - R)^2), where V_clipped is within ``clip`` of the old value.

    Ziegler et al. (2019), their code.
    """
    clipped_BT = torch.clamp(values_BT, old_values_BT - clip, old_values_BT + clip)
    errors_BT = torch.maximum((values_BT - returns_BT).square(), (clipped_BT - returns_BT).square())
    return 0.5 * masked_mean(errors_BT, mask_BT)


def reinforce_loss(log_probs_BT: Tensor, advantages_B: Tensor, mask_BT: Tensor) -> Tensor:
    """Return - mean A log pi(y), whose gradient estimates that of the expected return. Williams (1992)."""
    return -(advantages_B * (log_probs_BT * mask_BT).sum(dim=1)).mean()
