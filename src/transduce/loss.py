"""The training loss: cross-entropy with smoothed labels, as a sum with its count. Sections 5.4 and 6.2.

Shapes: N target positions, D d_model, V vocabulary; K passes over the same positions: 1, or 2 for R-Drop; R rows of a
block, P of a part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, assert_never

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = [
    "LossConfig",
    "LossSum",
    "Smoothing",
    "cross_entropy",
    "cross_entropy_reference",
    "r_drop",
    "r_drop_reference",
    "smoothing_weights",
]

Smoothing = Literal["uniform", "authors"]

# The scores that are held at once. More rows make better matrix products; these are 3,600 rows at V = 37,000 in bf16.
BLOCK_BYTES = 2**28
# Their softmax is taken in parts that stay in a processor's cache.
CPU_PART_ENTRIES = 2**19
# The last block is filled up to a multiple of this, for the reason in transduce.model.padding.
ROUND_UP_TO = 64


@dataclass(frozen=True, slots=True)
class LossConfig:
    """How the loss of an output layer departs from the plain cross-entropy."""

    eps_ls: float = 0.0  # label smoothing (section 5.4)
    smoothing: Smoothing = "uniform"
    r_drop: float = 0.0  # alpha of R-Drop, where states are those of two passes


@dataclass(frozen=True, slots=True)
class LossSum:
    """Sums over target positions; divide by ``n_tokens`` once, at the edge."""

    loss_nats: Tensor  # smoothed; carries the gradient
    nll_nats: Tensor  # not smoothed, what perplexity is made of; no gradient
    n_tokens: int
    auxiliary_nats: Tensor | None = None  # what layers minimise beside the loss, as the balance of experts

    @property
    def total_nats(self) -> Tensor:
        """What training minimises."""
        return self.loss_nats if self.auxiliary_nats is None else self.loss_nats + self.auxiliary_nats


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


def r_drop_reference(
    states_2ND: Tensor, weight_VD: Tensor, targets_N: Tensor, *, eps_ls: float, smoothing: Smoothing, alpha: float
) -> LossSum:
    """R-Drop as one reads it (Wu et al., 2021, equations 1 to 4, halved, so that alpha = 0 is the plain loss).

    The mean of the losses of two passes with different dropout, and alpha / 2 times the mean of the two divergences
    KL(p_1 || p_2) and KL(p_2 || p_1).
    """
    first, second = (
        cross_entropy_reference(states_ND, weight_VD, targets_N, eps_ls=eps_ls, smoothing=smoothing)
        for states_ND in states_2ND
    )
    log_p_2NV = (states_2ND @ weight_VD.T).log_softmax(dim=-1)
    difference_NV = log_p_2NV[0] - log_p_2NV[1]
    both_divergences = ((log_p_2NV[0].exp() - log_p_2NV[1].exp()) * difference_NV).sum()
    loss = (first.loss_nats + second.loss_nats) / 2 + alpha / 4 * both_divergences
    return LossSum(loss, (first.nll_nats + second.nll_nats) / 2, len(targets_N))


def cross_entropy(
    states_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, *, eps_ls: float, smoothing: Smoothing
) -> LossSum:
    """The values and gradients of ``cross_entropy_reference``, block by block: never more than a block of scores.

    The gradient is made on the way, while a block's scores are at hand, so that nothing is computed twice. Under
    autocast products are in its type, as all others of the model; sums and exponentials are in fp32 at least.
    """
    return _blockwise(states_ND.unsqueeze(0), weight_VD, targets_N, eps_ls=eps_ls, smoothing=smoothing, alpha=0.0)


def r_drop(
    states_2ND: Tensor, weight_VD: Tensor, targets_N: Tensor, *, eps_ls: float, smoothing: Smoothing, alpha: float
) -> LossSum:
    """The values and gradients of ``r_drop_reference``, likewise."""
    return _blockwise(states_2ND, weight_VD, targets_N, eps_ls=eps_ls, smoothing=smoothing, alpha=alpha)


def _blockwise(
    states_KND: Tensor, weight_VD: Tensor, targets_N: Tensor, *, eps_ls: float, smoothing: Smoothing, alpha: float
) -> LossSum:
    right, every = smoothing_weights(eps_ls, len(weight_VD), smoothing)
    with_gradient = torch.is_grad_enabled() and (states_KND.requires_grad or weight_VD.requires_grad)
    device_type = states_KND.device.type
    is_mixed = torch.is_autocast_enabled(device_type)
    product_dtype = torch.get_autocast_dtype(device_type) if is_mixed else weight_VD.dtype
    with torch.autocast(device_type, enabled=False):
        loss, nll = _BlockwiseCrossEntropy.apply(  # type: ignore[no-untyped-call]
            states_KND, weight_VD, targets_N, right, every, alpha, product_dtype, with_gradient
        )
    return LossSum(loss, nll, len(targets_N))


class _BlockwiseCrossEntropy(torch.autograd.Function):
    """With scores z, log-normaliser lse(z) and target class y, one position's loss is lse - a z_y - b sum_v z_v.

    Its gradient by z is softmax(z) - a [v = y] - b. The part with b is the same for every position, so it is taken
    out of the (rows, V) products: b sum_v W_v for the states, b sum_n h_n for the weight. Their product is the sum of
    all z. Of several passes it is the mean. The gradient is scaled in place, so it can be taken once.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states_KND: Tensor,
        weight_VD: Tensor,
        targets_N: Tensor,
        right: float,
        every: float,
        alpha: float,
        product_dtype: torch.dtype,
        with_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        dtype = torch.promote_types(product_dtype, torch.float32)
        n_passes = len(states_KND)
        loss, nll = states_KND.new_zeros((), dtype=dtype), states_KND.new_zeros((), dtype=dtype)
        factor_VD = weight_VD.to(product_dtype)
        block_rows = max(ROUND_UP_TO, BLOCK_BYTES // (n_passes * len(weight_VD) * product_dtype.itemsize))
        grad_states, grad_weight_VD = [], None
        for states_KRD, targets_R in zip(
            torch.split(states_KND, block_rows, dim=1), torch.split(targets_N, block_rows), strict=True
        ):
            n_rows = len(targets_R)
            filled_KRD = F.pad(states_KRD.to(product_dtype), (0, 0, 0, -n_rows % ROUND_UP_TO))
            z_KRV = filled_KRD @ factor_VD.T
            for z_KPV, targets_P in _parts(z_KRV[:, :n_rows], targets_R):
                nll_sum, target_sum, divergence_sum = _scores_to_gradient_(z_KPV, targets_P, right, alpha, dtype)
                nll += nll_sum
                loss += nll_sum + (1 - right) * target_sum + alpha / 4 * divergence_sum
            if with_gradient:
                z_KRV[:, n_rows:] = 0  # what fills up has no gradient
                grad_states.append((z_KRV @ factor_VD)[:, :n_rows])
                product_VD = (z_KRV.flatten(0, 1).T @ filled_KRD.flatten(0, 1)).to(dtype)
                grad_weight_VD = product_VD if grad_weight_VD is None else grad_weight_VD.add_(product_VD)
        every /= n_passes
        states_sum_D, weight_sum_D = states_KND.sum(dim=(0, 1), dtype=dtype), weight_VD.sum(dim=0, dtype=dtype)
        loss -= every * (states_sum_D @ weight_sum_D)
        if grad_weight_VD is not None:
            grad_states_KND = torch.cat(grad_states, dim=1).to(dtype).sub_(weight_sum_D, alpha=every)
            grad_weight_VD.sub_(states_sum_D, alpha=every)
            ctx.gradients = grad_states_KND.to(states_KND.dtype), grad_weight_VD.to(weight_VD.dtype)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.gradients is None:
            raise RuntimeError("the gradient of cross_entropy can be taken once; compute the loss anew")
        (grad_states_KND, grad_weight_VD), ctx.gradients = ctx.gradients, None
        return grad_states_KND.mul_(grads[0]), grad_weight_VD.mul_(grads[0]), None, None, None, None, None, None


def _parts(z_KRV: Tensor, targets_R: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows that fit into a processor's cache together; all of them on other devices."""
    n_passes, n_rows, vocab_size = z_KRV.shape
    is_cpu = z_KRV.device.type == "cpu"
    part_rows = max(1, CPU_PART_ENTRIES // (n_passes * vocab_size)) if is_cpu else n_rows
    return zip(torch.split(z_KRV, part_rows, dim=1), torch.split(targets_R, part_rows), strict=True)


def _scores_to_gradient_(
    z_KPV: Tensor, targets_P: Tensor, right: float, alpha: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Put the gradient of the loss, but for its part with b, into z's place.

    Returns three sums: the means over passes of lse - z_y and of z_y, and KL(p_1 || p_2) + KL(p_2 || p_1).
    """
    n_passes = len(z_KPV)
    target_KP1 = targets_P.expand(n_passes, -1).unsqueeze(2)
    wide_KPV = z_KPV.to(dtype)
    p_KPV = wide_KPV.softmax(dim=2)
    lse_KP1 = wide_KPV.amax(dim=2, keepdim=True) - p_KPV.amax(dim=2, keepdim=True).log()  # p = exp(z - lse)
    z_target_KP1 = wide_KPV.gather(2, target_KP1)
    divergence_sum = lse_KP1.new_zeros(())
    gradient_KPV = p_KPV
    if n_passes > 1:
        gradient_KPV, divergence_sum = _with_divergence(p_KPV, wide_KPV - lse_KP1, alpha)
    gradient_KPV.scatter_add_(2, target_KP1, torch.full_like(z_target_KP1, -right / n_passes))
    z_KPV.copy_(gradient_KPV)
    target_sum = z_target_KP1.sum() / n_passes
    return lse_KP1.sum() / n_passes - target_sum, target_sum, divergence_sum


def _with_divergence(p_2PV: Tensor, log_p_2PV: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """p / 2 and alpha / 4 times the gradient of D = KL(p_1 || p_2) + KL(p_2 || p_1) by the scores; and the sum of D.

    With d = log p_1 - log p_2, D = sum_v (p_1 - p_2) d, and its gradient by z_1 is p_1 (d - sum_v p_1 d) + p_1 - p_2.
    That by z_2 is the same with the two exchanged.
    """
    d_PV = log_p_2PV[0] - log_p_2PV[1]
    signed_d_2PV = torch.stack((d_PV, -d_PV))
    mean_2P1 = (p_2PV * signed_d_2PV).sum(dim=2, keepdim=True)
    gradient_2PV = p_2PV * (signed_d_2PV - mean_2P1) + p_2PV - p_2PV.flip(0)
    return p_2PV / 2 + alpha / 4 * gradient_2PV, mean_2P1.sum()
