"""The training loss: cross-entropy with smoothed labels, as a sum with its count. Sections 5.4 and 6.2.

Shapes: N target positions, D d_model, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, assert_never

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["LossSum", "Smoothing", "cross_entropy", "cross_entropy_reference", "smoothing_weights"]

Smoothing = Literal["uniform", "authors"]

# Rows of the softmax held at once: scores (512, 37000) in fp32 are 76 MB.
BLOCK_ROWS = 512
# The last block is filled up to a multiple of this, for the reason in transduce.model.layout.
ROUND_UP_TO = 64


@dataclass(frozen=True, slots=True)
class LossSum:
    """Sums over target positions; divide by ``n_tokens`` once, at the edge."""

    loss_nats: Tensor  # smoothed, what training minimises; carries the gradient
    nll_nats: Tensor  # not smoothed, what perplexity is made of; no gradient
    n_tokens: int


def smoothing_weights(eps_ls: float, vocab_size: int, smoothing: Smoothing) -> tuple[float, float]:
    """(a, b) such that the smoothed target puts b on every class and a more on the right one; a + V b = 1.

    "uniform" (Szegedy et al., cited in section 5.4): eps / V on every class. "authors" (their code): 1 - eps on the
    right class, eps / (V - 1) on each other.

    >>> a, b = smoothing_weights(0.1, 3, "uniform")
    >>> f"{a + b:.4f} {b:.4f}"
    '0.9333 0.0333'
    """
    match smoothing:
        case "uniform":
            return 1 - eps_ls, eps_ls / vocab_size
        case "authors":
            each_other = eps_ls / (vocab_size - 1)
            return 1 - eps_ls - each_other, each_other
        case _:
            assert_never(smoothing)


def cross_entropy_reference(
    states_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, *, eps_ls: float, smoothing: Smoothing
) -> LossSum:
    """The loss as one reads it: - sum_v q_v log p_v with the smoothed target q. Holds all scores, (N, V)."""
    right, every = smoothing_weights(eps_ls, len(weight_VD), smoothing)
    log_p_NV = (states_ND @ weight_VD.T).log_softmax(dim=-1)
    nll = -log_p_NV.gather(1, targets_N.unsqueeze(1)).sum()
    return LossSum(right * nll - every * log_p_NV.sum(), nll.detach(), len(targets_N))


def cross_entropy(
    states_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, *, eps_ls: float, smoothing: Smoothing
) -> LossSum:
    """The values and gradients of ``cross_entropy_reference``, block by block: never more than a block of scores.

    The gradient is made on the way, while a block's scores are at hand, so that nothing is computed twice.
    """
    right, every = smoothing_weights(eps_ls, len(weight_VD), smoothing)
    with_gradient = torch.is_grad_enabled() and (states_ND.requires_grad or weight_VD.requires_grad)
    loss, nll = _BlockwiseCrossEntropy.apply(  # type: ignore[no-untyped-call]
        states_ND, weight_VD, targets_N, right, every, with_gradient
    )
    return LossSum(loss, nll, len(targets_N))


class _BlockwiseCrossEntropy(torch.autograd.Function):
    """With scores z, log-normaliser lse(z) and target class y, one position's loss is lse - a z_y - b sum_v z_v.

    Its gradient by z is softmax(z) - a [v = y] - b. The part with b is the same for every position, so it is taken
    out of the (rows, V) products: b sum_v W_v for the states, b sum_n h_n for the weight.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states_ND: Tensor,
        weight_VD: Tensor,
        targets_N: Tensor,
        right: float,
        every: float,
        with_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        # Under autocast the products are in bf16; what is summed and exponentiated is fp32 at least.
        dtype = torch.promote_types(states_ND.dtype, torch.float32)
        loss, nll = states_ND.new_zeros((), dtype=dtype), states_ND.new_zeros((), dtype=dtype)
        grad_states_ND = torch.empty_like(states_ND) if with_gradient else states_ND.new_empty(0)
        grad_weight_VD = torch.zeros_like(weight_VD, dtype=dtype) if with_gradient else weight_VD.new_empty(0)
        for start in range(0, len(targets_N), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            target_R1 = targets_N[rows].unsqueeze(1)
            n_rows = len(target_R1)
            states_RD = F.pad(states_ND[rows], (0, 0, 0, -n_rows % ROUND_UP_TO))
            all_z_RV = (states_RD @ weight_VD.T).to(dtype)
            z_RV = all_z_RV[:n_rows]
            z_target_R1, z_sum, max_R1 = z_RV.gather(1, target_R1), z_RV.sum(), z_RV.amax(dim=1, keepdim=True)
            p_RV = z_RV.sub_(max_R1).exp_()
            normaliser_R1 = p_RV.sum(dim=1, keepdim=True)
            lse_R1 = normaliser_R1.log() + max_R1
            nll += (lse_R1 - z_target_R1).sum()
            loss += (lse_R1 - right * z_target_R1).sum() - every * z_sum
            if with_gradient:
                p_RV.div_(normaliser_R1)
                p_RV.scatter_(1, target_R1, p_RV.gather(1, target_R1) - right)
                all_z_RV[n_rows:] = 0  # what fills up has no gradient; the rest of it is p_RV now
                grad_states_ND[rows] = (all_z_RV @ weight_VD.to(dtype))[:n_rows]
                grad_weight_VD += all_z_RV.T @ states_RD.to(dtype)
        if with_gradient:
            grad_states_ND -= every * weight_VD.sum(dim=0)
            grad_weight_VD -= every * states_ND.sum(dim=0, dtype=dtype)
            ctx.save_for_backward(grad_states_ND, grad_weight_VD.to(weight_VD.dtype))
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_states_ND, grad_weight_VD = ctx.saved_tensors
        return grad_states_ND * grads[0], grad_weight_VD * grads[0], None, None, None, None
