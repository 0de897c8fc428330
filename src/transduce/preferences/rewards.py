"""Rewards of the tokens of a response: a score at its end, and a penalty for leaving the reference policy.

Shapes: B sequences (responses), T tokens of a response, padded on the right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

__all__ = ["AdaptiveKL", "masked_mean", "penalise_unfinished", "token_rewards", "whiten"]

EPS = 1e-8  # added to a variance
MAX_ERROR = 0.2  # of the proportional controller


def penalise_unfinished(scores_B: Tensor, is_finished_B: Tensor, penalty: float) -> Tensor:
    """Return the scores, with a fixed one for responses without an end. Ziegler et al. (2019)."""
    return torch.where(is_finished_B, scores_B, torch.full_like(scores_B, penalty))


def token_rewards(scores_B: Tensor, log_ratios_BT: Tensor, mask_BT: Tensor, *, beta: float) -> Tensor:
    """Return r_t = - beta log(pi / pi_ref)(y_t), plus the score at the last token; 0 at padding.

    Their sum is the score minus beta times a one-sample estimate of KL(pi || pi_ref). Ouyang et al. (2022), equation 2.

    >>> ratios_BT, mask_BT = torch.tensor([[0.5, 1.0, 9.0]]), torch.tensor([[True, True, False]])
    >>> token_rewards(torch.tensor([2.0]), ratios_BT, mask_BT, beta=0.5).tolist()
    [[-0.25, 1.5, -0.0]]
    """
    penalties_BT = -beta * log_ratios_BT * mask_BT
    last_B1 = mask_BT.sum(dim=1, keepdim=True) - 1
    return penalties_BT.scatter_add(1, last_B1, scores_B.unsqueeze(1))


def masked_mean(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return the mean over all real positions of all rows."""
    return (values_BT * mask_BT).sum() / mask_BT.sum()


def whiten(values_BT: Tensor, mask_BT: Tensor, *, keeps_mean: bool = False) -> Tensor:
    """Return the values at the real positions with variance 1 and mean 0, or their own mean; 0 at padding.

    The variance is the biased one.
    """
    mean = masked_mean(values_BT, mask_BT)
    variance = masked_mean((values_BT - mean).square(), mask_BT)
    whitened_BT = (values_BT - mean) * torch.rsqrt(variance + EPS)
    return (whitened_BT + mean if keeps_mean else whitened_BT) * mask_BT


@dataclass(frozen=True, slots=True)
class AdaptiveKL:
    """The coefficient beta of the KL penalty, steered towards a target divergence. Ziegler et al. (2019), section 2.2.

    >>> AdaptiveKL(0.1, target=6.0, horizon=10_000).after(kl=12.0, n_responses=1000).beta
    0.10200...
    """

    beta: float
    target: float | None  # nats of a response; None: beta is fixed
    horizon: int  # responses

    def after(self, kl: float, n_responses: int) -> AdaptiveKL:
        """Return the controller after responses with a mean divergence ``kl``: beta grows if it is above the target."""
        if self.target is None:
            return self
        error = min(max(kl / self.target - 1, -MAX_ERROR), MAX_ERROR)
        return replace(self, beta=self.beta * (1 + error * min(1.0, n_responses / self.horizon)))
