"""Many feed-forward networks, of which each position asks a few: the mixture of experts of Table 2's MoE row.

Shapes: N positions, D d_model, E experts, A active ones, R positions sent to one expert.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

from transduce.config import ModelConfig
from transduce.errors import ShapeError

__all__ = ["MixtureOfExperts", "balance_loss", "side_losses"]

# What an uneven use of experts costs beside the loss of a position, in nats. Fedus, Zoph and Shazeer (2021).
BALANCE = 0.01


class MixtureOfExperts(nn.Module):
    """sum over the A likeliest experts of gate(x) expert(x), gates being a softmax over those A.

    After Shazeer et al. (2017), who put it between LSTM layers; here it is in the place of the feed-forward network.
    Without noise in the gates: what keeps the experts in use is ``balance_loss``, added to what training minimises.
    """

    def __init__(self, config: ModelConfig, expert: type[nn.Module]) -> None:
        super().__init__()
        self.n_active = config.n_active_experts
        if self.n_active > config.n_experts:
            raise ShapeError(f"n_active_experts {self.n_active} is above n_experts {config.n_experts}")
        self.gate = nn.Linear(config.d_model, config.n_experts, bias=False)
        self.experts = nn.ModuleList(expert(config) for _ in range(config.n_experts))

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to (..., D)."""
        x_ND = x.flatten(0, -2)
        scores_NE = self.gate(x_ND).float()
        chosen_NA, expert_NA = scores_NE.topk(self.n_active, dim=-1)
        gate_NA = chosen_NA.softmax(dim=-1)
        if self.training:
            _minimise_too(BALANCE * len(x_ND) * balance_loss(scores_NE.softmax(dim=-1), expert_NA))
        out_ND = torch.zeros_like(x_ND)
        for number, expert in enumerate(self.experts):
            row_R, place_R = (expert_NA == number).nonzero(as_tuple=True)
            answer_RD = expert(x_ND[row_R]) * gate_NA[row_R, place_R].unsqueeze(1)
            out_ND = out_ND.index_add(0, row_R, answer_RD.to(out_ND.dtype))
        return out_ND.view_as(x)


def balance_loss(p_NE: Tensor, expert_NA: Tensor) -> Tensor:
    """E sum_e (share of positions sent to e) (mean probability of e): 1 if all are used alike, E if one does all.

    >>> p, sent = torch.tensor([[0.5, 0.5], [0.5, 0.5]]), torch.tensor([[0], [1]])
    >>> balance_loss(p, sent).item()
    1.0
    """
    n_experts = p_NE.shape[1]
    sent_E = torch.bincount(expert_NA.flatten(), minlength=n_experts) / expert_NA.numel()
    return n_experts * (sent_E.to(p_NE.dtype) * p_NE.mean(dim=0)).sum()


_losses: ContextVar[list[Tensor] | None] = ContextVar("losses beside the main one", default=None)


@contextmanager
def side_losses() -> Iterator[list[Tensor]]:
    """What layers would have minimised beside the main loss, in the same sums over positions; filled on the way."""
    collected: list[Tensor] = []
    token = _losses.set(collected)
    try:
        yield collected
    finally:
        _losses.reset(token)


def _minimise_too(loss: Tensor) -> None:
    """Give a loss to whoever asked for such; to nobody, if nobody did."""
    collected = _losses.get()
    if collected is not None:
        collected.append(loss)
