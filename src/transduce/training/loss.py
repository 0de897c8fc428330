"""The training loss: cross-entropy with smoothed labels, as a sum with its count. Sections 5.4 and 6.2.

Shapes: N target positions, D d_model, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, assert_never

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["LossSum", "Smoothing", "cross_entropy", "cross_entropy_reference", "smoothing_weights"]

Smoothing = Literal["uniform", "authors"]

# The scores that are held at once. More rows make better matrix products; these are 3,600 rows at V = 37,000 in bf16.
BLOCK_BYTES = 2**28
# Their softmax is taken in parts that stay in a processor's cache.
CPU_PART_ENTRIES = 2**19
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

    The gradient is made on the way, while a block's scores are at hand, so that nothing is computed twice. Under
    autocast products are in its type, as all others of the model; sums and exponentials are in fp32 at least.
    """
    right, every = smoothing_weights(eps_ls, len(weight_VD), smoothing)
    with_gradient = torch.is_grad_enabled() and (states_ND.requires_grad or weight_VD.requires_grad)
    device_type = states_ND.device.type
    is_mixed = torch.is_autocast_enabled(device_type)
    product_dtype = torch.get_autocast_dtype(device_type) if is_mixed else weight_VD.dtype
    with torch.autocast(device_type, enabled=False):
        loss, nll = _BlockwiseCrossEntropy.apply(  # type: ignore[no-untyped-call]
            states_ND, weight_VD, targets_N, right, every, product_dtype, with_gradient
        )
    return LossSum(loss, nll, len(targets_N))


class _BlockwiseCrossEntropy(torch.autograd.Function):
    """With scores z, log-normaliser lse(z) and target class y, one position's loss is lse - a z_y - b sum_v z_v.

    Its gradient by z is softmax(z) - a [v = y] - b. The part with b is the same for every position, so it is taken
    out of the (rows, V) products: b sum_v W_v for the states, b sum_n h_n for the weight. Their product is the sum of
    all z. The gradient is scaled in place, so it can be taken once.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states_ND: Tensor,
        weight_VD: Tensor,
        targets_N: Tensor,
        right: float,
        every: float,
        product_dtype: torch.dtype,
        with_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        dtype = torch.promote_types(product_dtype, torch.float32)
        loss, nll = states_ND.new_zeros((), dtype=dtype), states_ND.new_zeros((), dtype=dtype)
        factor_VD = weight_VD.to(product_dtype)
        block_rows = max(ROUND_UP_TO, BLOCK_BYTES // (len(weight_VD) * product_dtype.itemsize))
        grad_states, grad_weight_VD = [], None
        for states_RD, targets_R in zip(
            torch.split(states_ND, block_rows), torch.split(targets_N, block_rows), strict=True
        ):
            n_rows = len(targets_R)
            filled_RD = F.pad(states_RD.to(product_dtype), (0, 0, 0, -n_rows % ROUND_UP_TO))
            z_RV = filled_RD @ factor_VD.T
            for z_PV, targets_P in _parts(z_RV[:n_rows], targets_R):
                nll_sum, target_sum = _softmax_minus_target_(z_PV, targets_P, right, dtype)
                nll += nll_sum
                loss += nll_sum + (1 - right) * target_sum
            if with_gradient:
                z_RV[n_rows:] = 0  # what fills up has no gradient
                grad_states.append((z_RV @ factor_VD)[:n_rows])
                product_VD = (z_RV.T @ filled_RD).to(dtype)
                grad_weight_VD = product_VD if grad_weight_VD is None else grad_weight_VD.add_(product_VD)
        states_sum_D, weight_sum_D = states_ND.sum(dim=0, dtype=dtype), weight_VD.sum(dim=0, dtype=dtype)
        loss -= every * (states_sum_D @ weight_sum_D)
        if grad_weight_VD is not None:
            grad_states_ND = torch.cat(grad_states).to(dtype).sub_(weight_sum_D, alpha=every)
            grad_weight_VD.sub_(states_sum_D, alpha=every)
            ctx.gradients = grad_states_ND.to(states_ND.dtype), grad_weight_VD.to(weight_VD.dtype)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.gradients is None:
            raise RuntimeError("the gradient of cross_entropy can be taken once; compute the loss anew")
        (grad_states_ND, grad_weight_VD), ctx.gradients = ctx.gradients, None
        return grad_states_ND.mul_(grads[0]), grad_weight_VD.mul_(grads[0]), None, None, None, None, None


def _parts(z_RV: Tensor, targets_R: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows that fit into a processor's cache together; all of them on other devices."""
    n_rows, vocab_size = z_RV.shape
    part_rows = max(1, CPU_PART_ENTRIES // vocab_size) if z_RV.device.type == "cpu" else n_rows
    return zip(torch.split(z_RV, part_rows), torch.split(targets_R, part_rows), strict=True)


def _softmax_minus_target_(z_PV: Tensor, targets_P: Tensor, right: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Put softmax(z) - ``right`` [v = y] into z's place; returns the sums of lse - z_y and of z_y."""
    target_P1 = targets_P.unsqueeze(1)
    wide_PV = z_PV.to(dtype)
    p_PV = wide_PV.softmax(dim=1)
    lse_P1 = wide_PV.amax(dim=1, keepdim=True) - p_PV.amax(dim=1, keepdim=True).log()  # p = exp(z - lse)
    z_target_P1 = wide_PV.gather(1, target_P1)
    p_PV.scatter_add_(1, target_P1, torch.full_like(z_target_P1, -right))
    z_PV.copy_(p_PV)
    target_sum = z_target_P1.sum()
    return lse_P1.sum() - target_sum, target_sum
