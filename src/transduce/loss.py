"""The training loss: cross-entropy with label smoothing, as a sum with its token count. Sections 5.4 and 6.2.

Read ``cross_entropy_reference`` first; ``cross_entropy`` computes the same values and gradients in blocks.

Shapes: N target positions, D d_model, V vocabulary, X forward passes over the same positions (1; 2 for R-Drop),
R rows of a block, P rows of a part of a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, assert_never

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.bucketing import bucket_rows
from transduce.native_library import CrossEntropy, compute, computes

__all__ = [
    "LossConfig", "LossSum", "Smoothing", "cross_entropy", "cross_entropy_reference", "r_drop", "r_drop_reference",
    "smoothing_weights",
]  # fmt: skip

Smoothing = Literal["uniform", "authors"]

# Size of a block of logits. Larger blocks make faster matrix products; this is 3,600 rows at V = 37,000 in bf16.
BLOCK_BYTES = 2**28
MIN_BLOCK_ROWS = 64
# The softmax of a block runs in parts that stay in the CPU cache.
CPU_PART_ENTRIES = 2**19


@dataclass(frozen=True, slots=True)
class LossConfig:
    """Options of the loss: label smoothing and R-Drop."""

    eps_ls: float = 0.0  # label smoothing (section 5.4)
    smoothing: Smoothing = "uniform"
    r_drop: float = 0.0  # alpha of R-Drop; used if the states are those of two passes


@dataclass(frozen=True, slots=True)
class LossSum:
    """The loss as sums over target positions; divide by ``n_tokens`` once, after all sums."""

    loss_nats: Tensor  # with label smoothing; has a gradient
    nll_nats: Tensor  # without label smoothing, for perplexity; no gradient
    n_tokens: int
    auxiliary_nats: Tensor | None = None  # further losses, such as the balance loss of experts

    @property
    def total_nats(self) -> Tensor:
        """The objective: loss plus auxiliary losses."""
        return self.loss_nats if self.auxiliary_nats is None else self.loss_nats + self.auxiliary_nats


def smoothing_weights(eps_ls: float, vocab_size: int, smoothing: Smoothing) -> tuple[float, float]:
    """(a, b) of the smoothed target distribution: b on every class, plus a on the target class; a + V b = 1.

    "uniform" (Szegedy et al., cited in section 5.4): eps / V on every class. "authors" (their code): 1 - eps on the
    target class, eps / (V - 1) on each other class.

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
    """The formula: - sum_v q_v log p_v with the smoothed target distribution q. Holds all logits, (N, V)."""
    a, b = smoothing_weights(eps_ls, len(weight_VD), smoothing)
    log_p_NV = (states_ND @ weight_VD.T).log_softmax(dim=-1)
    nll = -log_p_NV.gather(1, targets_N.unsqueeze(1)).sum()
    return LossSum(a * nll - b * log_p_NV.sum(), nll.detach(), len(targets_N))


def r_drop_reference(
    states_2ND: Tensor, weight_VD: Tensor, targets_N: Tensor, *, eps_ls: float, smoothing: Smoothing, alpha: float
) -> LossSum:
    """The formula of R-Drop (Wu et al., 2021, equations 1 to 4, halved, so that alpha = 0 is the plain loss).

    The mean loss of two passes with different dropout, plus alpha / 2 times the mean of the divergences KL(p_1 || p_2)
    and KL(p_2 || p_1).
    """
    first, second = (
        cross_entropy_reference(states_ND, weight_VD, targets_N, eps_ls=eps_ls, smoothing=smoothing)
        for states_ND in states_2ND
    )
    log_p_2NV = (states_2ND @ weight_VD.T).log_softmax(dim=-1)
    difference_NV = log_p_2NV[0] - log_p_2NV[1]
    divergence_sum = ((log_p_2NV[0].exp() - log_p_2NV[1].exp()) * difference_NV).sum()
    loss = (first.loss_nats + second.loss_nats) / 2 + alpha / 4 * divergence_sum
    return LossSum(loss, (first.nll_nats + second.nll_nats) / 2, len(targets_N))


def cross_entropy(
    states_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, *, eps_ls: float, smoothing: Smoothing
) -> LossSum:
    """The values and gradients of ``cross_entropy_reference``, with only one block of logits in memory at a time.

    The gradient is computed in the forward pass, from the same logits. Under autocast, matrix products use its dtype;
    sums and exponentials are at least fp32.
    """
    return _blockwise(states_ND.unsqueeze(0), weight_VD, targets_N, eps_ls=eps_ls, smoothing=smoothing, alpha=0.0)


def r_drop(
    states_2ND: Tensor, weight_VD: Tensor, targets_N: Tensor, *, eps_ls: float, smoothing: Smoothing, alpha: float
) -> LossSum:
    """The values and gradients of ``r_drop_reference``, computed as in ``cross_entropy``."""
    return _blockwise(states_2ND, weight_VD, targets_N, eps_ls=eps_ls, smoothing=smoothing, alpha=alpha)


def _blockwise(
    states_XND: Tensor, weight_VD: Tensor, targets_N: Tensor, *, eps_ls: float, smoothing: Smoothing, alpha: float
) -> LossSum:
    a, b = smoothing_weights(eps_ls, len(weight_VD), smoothing)
    with_gradient = torch.is_grad_enabled() and (states_XND.requires_grad or weight_VD.requires_grad)
    device_type = states_XND.device.type
    is_autocast = torch.is_autocast_enabled(device_type)
    product_dtype = torch.get_autocast_dtype(device_type) if is_autocast else weight_VD.dtype
    with torch.autocast(device_type, enabled=False):
        loss, nll = _BlockwiseCrossEntropy.apply(  # type: ignore[no-untyped-call]
            states_XND, weight_VD, targets_N, a, b, alpha, product_dtype, with_gradient
        )
    return LossSum(loss, nll, len(targets_N))


class _BlockwiseCrossEntropy(torch.autograd.Function):
    """Cross-entropy in blocks: lse(z) - a z_y - b sum_v z_v at a position with logits z and target class y.

    Its gradient with respect to z is softmax(z) - a [v = y] - b. The constant b is left out of the (R, V) products and
    subtracted at the end: b sum_v W_v from the gradient of every state h_n, b sum_n h_n from that of every weight row
    W_v. The dot product of the two sums is the sum of all z. With several passes, the loss is their mean. backward can
    run once, since it scales the gradient in place.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states_XND: Tensor,
        weight_VD: Tensor,
        targets_N: Tensor,
        a: float,
        b: float,
        alpha: float,
        product_dtype: torch.dtype,
        with_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        dtype = torch.promote_types(product_dtype, torch.float32)
        n_passes = len(states_XND)
        loss, nll = states_XND.new_zeros((), dtype=dtype), states_XND.new_zeros((), dtype=dtype)
        cast_weight_VD = weight_VD.to(product_dtype)
        block_rows = max(MIN_BLOCK_ROWS, BLOCK_BYTES // (n_passes * len(weight_VD) * product_dtype.itemsize))
        grad_states, grad_weight_VD = [], None
        for states_XRD, targets_R in zip(
            torch.split(states_XND, block_rows, dim=1), torch.split(targets_N, block_rows), strict=True
        ):
            n_rows = len(targets_R)
            padded_XRD = F.pad(states_XRD.to(product_dtype), (0, 0, 0, bucket_rows(n_rows) - n_rows))
            z_XRV = padded_XRD @ cast_weight_VD.T
            for z_XPV, targets_P in _parts(z_XRV[:, :n_rows], targets_R):
                nll_sum, target_sum, divergence_sum = _logits_to_gradient_(z_XPV, targets_P, a, alpha, dtype)
                nll += nll_sum
                loss += nll_sum + (1 - a) * target_sum + alpha / 4 * divergence_sum
            if with_gradient:
                z_XRV[:, n_rows:] = 0  # no gradient at padding
                grad_states.append((z_XRV @ cast_weight_VD)[:, :n_rows])
                block_grad_VD = (z_XRV.flatten(0, 1).T @ padded_XRD.flatten(0, 1)).to(dtype)
                grad_weight_VD = block_grad_VD if grad_weight_VD is None else grad_weight_VD.add_(block_grad_VD)
        b /= n_passes
        states_sum_D, weight_sum_D = states_XND.sum(dim=(0, 1), dtype=dtype), weight_VD.sum(dim=0, dtype=dtype)
        loss -= b * (states_sum_D @ weight_sum_D)
        if grad_weight_VD is not None:
            grad_states_XND = torch.cat(grad_states, dim=1).to(dtype).sub_(weight_sum_D, alpha=b)
            grad_weight_VD.sub_(states_sum_D, alpha=b)
            ctx.gradients = grad_states_XND.to(states_XND.dtype), grad_weight_VD.to(weight_VD.dtype)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.gradients is None:
            raise RuntimeError("the gradient of cross_entropy can be computed once; compute the loss again")
        (grad_states_XND, grad_weight_VD), ctx.gradients = ctx.gradients, None
        return grad_states_XND.mul_(grads[0]), grad_weight_VD.mul_(grads[0]), None, None, None, None, None, None


def _parts(z_XRV: Tensor, targets_R: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Split a block into parts that fit into the CPU cache; one part in C, and on other devices."""
    n_passes, n_rows, vocab_size = z_XRV.shape
    in_parts = z_XRV.device.type == "cpu" and not _is_in_c(z_XRV)
    part_rows = max(1, CPU_PART_ENTRIES // (n_passes * vocab_size)) if in_parts else n_rows
    return zip(torch.split(z_XRV, part_rows, dim=1), torch.split(targets_R, part_rows), strict=True)


def _logits_to_gradient_(
    z_XPV: Tensor, targets_P: Tensor, a: float, alpha: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Replace the logits z, in place, by the gradient of the loss without its term in b.

    Returns sums over positions of lse - z_y and z_y, averaged over passes, and of KL(p_1 || p_2) + KL(p_2 || p_1).
    """
    if _is_in_c(z_XPV):
        return _logits_to_gradient_in_c_(z_XPV, targets_P, a, alpha)
    n_passes = len(z_XPV)
    target_XP1 = targets_P.expand(n_passes, -1).unsqueeze(2)
    upcast_XPV = z_XPV.to(dtype)
    p_XPV = upcast_XPV.softmax(dim=2)
    lse_XP1 = upcast_XPV.amax(dim=2, keepdim=True) - p_XPV.amax(dim=2, keepdim=True).log()  # p = exp(z - lse)
    z_target_XP1 = upcast_XPV.gather(2, target_XP1)
    divergence_sum = lse_XP1.new_zeros(())
    gradient_XPV = p_XPV
    if n_passes > 1:
        gradient_XPV, divergence_sum = _with_divergence(p_XPV, upcast_XPV, lse_XP1, alpha)
    gradient_XPV.scatter_add_(2, target_XP1, torch.full_like(z_target_XP1, -a / n_passes))
    z_XPV.copy_(gradient_XPV)
    target_sum = z_target_XP1.sum() / n_passes
    return lse_XP1.sum() / n_passes - target_sum, target_sum, divergence_sum


def _is_in_c(z_XPV: Tensor) -> bool:
    """Whether the library computes it: on a CPU, of at most two passes."""
    is_known = z_XPV.dtype in (torch.float32, torch.bfloat16) and len(z_XPV) <= 2 and z_XPV.stride(2) == 1
    is_here = z_XPV.device.type == "cpu" and not torch.compiler.is_compiling()
    return is_known and is_here and computes(torch.get_num_threads())


def _logits_to_gradient_in_c_(
    z_XPV: Tensor, targets_P: Tensor, a: float, alpha: float
) -> tuple[Tensor, Tensor, Tensor]:
    """``_logits_to_gradient_``, one position after another."""
    n_passes, n_positions, vocab_size = z_XPV.shape
    targets_P, sums_P3 = targets_P.long().contiguous(), torch.empty(n_positions, 3, dtype=torch.float64)
    call = CrossEntropy(n_passes, vocab_size, z_XPV.dtype == torch.bfloat16, *z_XPV.stride()[:2])
    call.logits, call.targets, call.sums = (each.data_ptr() for each in (z_XPV, targets_P, sums_P3))
    call.a, call.alpha = a, alpha
    compute(call, n_positions, torch.get_num_threads())
    nll_sum, target_sum, divergence_sum = sums_P3.sum(dim=0).float().unbind()
    return nll_sum, target_sum, divergence_sum


def _with_divergence(p_2PV: Tensor, z_2PV: Tensor, lse_2P1: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """p / 2 plus alpha / 4 times the gradient of D = KL(p_1 || p_2) + KL(p_2 || p_1) in the logits, and the sum of D.

    With d = log p_1 - log p_2, D = sum_v (p_1 - p_2) d, and its gradient in z_1 is p_1 (d - sum_v p_1 d) + p_1 - p_2.
    The gradient in z_2 is the same with 1 and 2 exchanged. Few operations, since each reads the whole part.
    """
    factor = alpha / 4
    d_PV = torch.sub(z_2PV[0], z_2PV[1]).sub_(lse_2P1[0] - lse_2P1[1])
    divergence_sum = lse_2P1.new_zeros(())
    gradient_2PV = torch.empty_like(p_2PV)
    for own, other, sign in ((0, 1, 1.0), (1, 0, -1.0)):
        mean_P1 = sign * torch.linalg.vecdot(p_2PV[own], d_PV).unsqueeze(1)  # KL of this pass from the other
        divergence_sum += mean_P1.sum()
        torch.add(0.5 + factor - factor * mean_P1, d_PV, alpha=sign * factor, out=gradient_2PV[own])
        gradient_2PV[own].mul_(p_2PV[own]).sub_(p_2PV[other], alpha=factor)
    return gradient_2PV, divergence_sum
