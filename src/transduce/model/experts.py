"""Sparsely gated mixture of experts, the MoE row of Table 2: each position is routed to a few of many networks.

Shapes: N positions, D d_model, E experts, A active experts of a position, M = N A routed inputs, R those of one expert.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.bucketing import bucket_rows
from transduce.errors import ShapeError
from transduce.model.padding import EncoderOutput
from transduce.model.stack_config import StackConfig

__all__ = ["AuxiliaryLosses", "MixtureOfExperts", "balance_loss"]

# The weight of the balance loss, in nats per position. Fedus, Zoph and Shazeer (2021).
BALANCE_WEIGHT = 0.01


class AuxiliaryLosses:
    """Collects the auxiliary losses of layers during a forward pass, as sums over positions.

    The objective passes it in. It is not a plain list because FSDP2 copies lists. ``memory`` are the encoder's states
    of the pass, for losses that are computed from them (CTC): so the model is called as always, also where it is
    sharded.
    """

    def __init__(self) -> None:
        self.losses: list[Tensor] = []
        self.memory: EncoderOutput | None = None

    def add(self, loss: Tensor) -> None:
        """Add the loss of one layer."""
        self.losses.append(loss)

    def total(self) -> Tensor | None:
        """The sum of all losses; None if there are none."""
        return sum(self.losses[1:], self.losses[0]) if self.losses else None


class Gate(nn.Linear):
    """The gating network; kept in full precision for inference, as rounding could select other experts."""

    def forward(self, x_ND: Tensor) -> Tensor:
        """Gate logits (N, E), in the dtype of the weight."""
        return super().forward(x_ND.to(self.weight.dtype))


class MixtureOfExperts(nn.Module):
    """The sum of gate(x) expert(x) over the A most probable experts; the gates are a softmax over these A.

    After Shazeer et al. (2017), who put it between LSTM layers; here it replaces the feed-forward network. There is no
    noise in the gates: the auxiliary ``balance_loss`` keeps all experts in use.
    """

    def __init__(self, config: StackConfig, expert: type[nn.Module]) -> None:
        super().__init__()
        self.n_active = config.n_active_experts
        if self.n_active > config.n_experts:
            raise ShapeError(f"n_active_experts {self.n_active} is above n_experts {config.n_experts}")
        self.gate = Gate(config.d_model, config.n_experts, bias=False)
        self.experts = nn.ModuleList(expert(config) for _ in range(config.n_experts))

    def forward(self, x: Tensor, auxiliary: AuxiliaryLosses | None = None, n_real: int | None = None) -> Tensor:
        """(..., D) to (..., D); ``auxiliary`` gets the balance loss of the first ``n_real`` inputs (None: all)."""
        x_ND = x.flatten(0, -2)
        logits_NE = self.gate(x_ND).float()
        top_logits_NA, expert_NA = logits_NE.topk(self.n_active, dim=-1)
        gate_NA = top_logits_NA.softmax(dim=-1)
        if auxiliary is not None:
            p_NE = logits_NE[:n_real].softmax(dim=-1)
            auxiliary.add(BALANCE_WEIGHT * len(p_NE) * balance_loss(p_NE, expert_NA[:n_real]))
        expert_M = expert_NA.flatten()
        order_M = expert_M.argsort(stable=True)  # groups the inputs by expert
        n_routed_E = torch.bincount(expert_M, minlength=len(self.experts)).tolist()
        routed = torch.split(x_ND.index_select(0, order_M // self.n_active), n_routed_E)
        out_MD = torch.cat([_apply(expert, x_RD) for expert, x_RD in zip(self.experts, routed, strict=True)])
        out_NAD = out_MD.index_select(0, order_M.argsort()).view(*expert_NA.shape, -1)  # in the original order
        out_ND: Tensor = (gate_NA.unsqueeze(-1) * out_NAD).sum(dim=1).to(x.dtype)
        return out_ND.view_as(x)


def _apply(expert: nn.Module, x_RD: Tensor) -> Tensor:
    """The expert's outputs, (R, D); in training R is rounded up, as ``transduce.bucketing`` explains."""
    n_extra = bucket_rows(len(x_RD)) - len(x_RD) if expert.training else 0
    out_RD: Tensor = expert(F.pad(x_RD, (0, 0, 0, n_extra)))
    return out_RD[: len(x_RD)]


def balance_loss(p_NE: Tensor, expert_NA: Tensor) -> Tensor:
    """E sum_e (fraction of inputs routed to e) (mean probability of e): 1 if balanced, E if one expert gets all.

    >>> p_NE, expert_NA = torch.tensor([[0.5, 0.5], [0.5, 0.5]]), torch.tensor([[0], [1]])
    >>> balance_loss(p_NE, expert_NA).item()
    1.0
    """
    n_experts = p_NE.shape[1]
    fraction_E = torch.bincount(expert_NA.flatten(), minlength=n_experts) / expert_NA.numel()
    return n_experts * (fraction_E.to(p_NE.dtype) * p_NE.mean(dim=0)).sum()
