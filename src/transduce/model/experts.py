"""Many feed-forward networks, of which each position asks a few: the mixture of experts of Table 2's MoE row.

Shapes: N positions, D d_model, E experts, A active ones, M = N A questions, R of them to one expert.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import TransformerConfig
from transduce.errors import ShapeError
from transduce.model.layout import ROUND_UP_TO

__all__ = ["MixtureOfExperts", "balance_loss", "side_losses"]

# What an uneven use of experts costs beside the loss of a position, in nats. Fedus, Zoph and Shazeer (2021).
BALANCE = 0.01


class Gate(nn.Linear):
    """Scores (N, E) of the experts; never rounded for inference, where a little might choose another one."""

    def forward(self, x_ND: Tensor) -> Tensor:
        """In the type of its weight."""
        return super().forward(x_ND.to(self.weight.dtype))


class MixtureOfExperts(nn.Module):
    """sum over the A likeliest experts of gate(x) expert(x), gates being a softmax over those A.

    After Shazeer et al. (2017), who put it between LSTM layers; here it is in the place of the feed-forward network.
    Without noise in the gates: what keeps the experts in use is ``balance_loss``, added to what training minimises.
    """

    def __init__(self, config: TransformerConfig, expert: type[nn.Module]) -> None:
        super().__init__()
        self.n_active = config.n_active_experts
        if self.n_active > config.n_experts:
            raise ShapeError(f"n_active_experts {self.n_active} is above n_experts {config.n_experts}")
        self.gate = Gate(config.d_model, config.n_experts, bias=False)
        self.experts = nn.ModuleList(expert(config) for _ in range(config.n_experts))

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to (..., D)."""
        x_ND = x.flatten(0, -2)
        scores_NE = self.gate(x_ND).float()
        chosen_NA, expert_NA = scores_NE.topk(self.n_active, dim=-1)
        gate_NA = chosen_NA.softmax(dim=-1)
        if self.training:
            _minimise_too(BALANCE * len(x_ND) * balance_loss(scores_NE.softmax(dim=-1), expert_NA))
        expert_M = expert_NA.flatten()
        order_M = expert_M.argsort(stable=True)  # those of one expert stand together
        n_sent_E = torch.bincount(expert_M, minlength=len(self.experts)).tolist()
        sent = torch.split(x_ND.index_select(0, order_M // self.n_active), n_sent_E)
        answer_MD = torch.cat([_ask(expert, x_RD) for expert, x_RD in zip(self.experts, sent, strict=True)])
        answer_NAD = answer_MD.index_select(0, order_M.argsort()).view(*expert_NA.shape, -1)
        out_ND: Tensor = (gate_NA.unsqueeze(-1) * answer_NAD).sum(dim=1).to(x.dtype)
        return out_ND.view_as(x)


def _ask(expert: nn.Module, x_RD: Tensor) -> Tensor:
    """The expert's answers, (R, D); in training filled up, for the reason in ``transduce.model.layout``."""
    n_filling = -len(x_RD) % ROUND_UP_TO if expert.training else 0
    answer_RD: Tensor = expert(F.pad(x_RD, (0, 0, 0, n_filling)))
    return answer_RD[: len(x_RD)]


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
