"""Many feed-forward networks, of which each position asks a few: the mixture of experts of Table 2's MoE row.

Shapes: N positions, D d_model, E experts, A active ones, M = N A questions, R of them to one expert.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.errors import ShapeError
from transduce.model.padding import ROUND_UP_TO
from transduce.model.stack_config import StackConfig

__all__ = ["AuxiliaryLosses", "MixtureOfExperts", "balance_loss"]

# What an uneven use of experts costs beside the loss of a position, in nats. Fedus, Zoph and Shazeer (2021).
BALANCE = 0.01


class AuxiliaryLosses:
    """What layers minimise beside the loss, in the same sums over positions: filled while a model runs."""

    def __init__(self) -> None:
        self.losses: list[Tensor] = []

    def add(self, loss: Tensor) -> None:
        """Take one more."""
        self.losses.append(loss)

    def total(self) -> Tensor | None:
        """Their sum; None where there are none."""
        return sum(self.losses[1:], self.losses[0]) if self.losses else None


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

    def __init__(self, config: StackConfig, expert: type[nn.Module]) -> None:
        super().__init__()
        self.n_active = config.n_active_experts
        if self.n_active > config.n_experts:
            raise ShapeError(f"n_active_experts {self.n_active} is above n_experts {config.n_experts}")
        self.gate = Gate(config.d_model, config.n_experts, bias=False)
        self.experts = nn.ModuleList(expert(config) for _ in range(config.n_experts))

    def forward(self, x: Tensor, auxiliary: AuxiliaryLosses | None = None) -> Tensor:
        """(..., D) to (..., D); ``auxiliary`` takes the balance loss."""
        x_ND = x.flatten(0, -2)
        scores_NE = self.gate(x_ND).float()
        chosen_NA, expert_NA = scores_NE.topk(self.n_active, dim=-1)
        gate_NA = chosen_NA.softmax(dim=-1)
        if auxiliary is not None:
            auxiliary.add(BALANCE * len(x_ND) * balance_loss(scores_NE.softmax(dim=-1), expert_NA))
        expert_M = expert_NA.flatten()
        order_M = expert_M.argsort(stable=True)  # those of one expert stand together
        n_sent_E = torch.bincount(expert_M, minlength=len(self.experts)).tolist()
        sent = torch.split(x_ND.index_select(0, order_M // self.n_active), n_sent_E)
        answer_MD = torch.cat([_ask(expert, x_RD) for expert, x_RD in zip(self.experts, sent, strict=True)])
        answer_NAD = answer_MD.index_select(0, order_M.argsort()).view(*expert_NA.shape, -1)
        out_ND: Tensor = (gate_NA.unsqueeze(-1) * answer_NAD).sum(dim=1).to(x.dtype)
        return out_ND.view_as(x)


def _ask(expert: nn.Module, x_RD: Tensor) -> Tensor:
    """The expert's answers, (R, D); in training filled up, for the reason in ``transduce.model.padding``."""
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
