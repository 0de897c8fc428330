"""Muon: momentum whose steps are made orthogonal (Jordan et al., 2024). Not in the paper.

As ``torch.optim.Muon``, but that computes in bf16 on every device, and a CPU without bf16 arithmetic takes 60 times as
long for it (one thread of an AMD EPYC, a matrix of 256 x 1024: 1.2 s and 0.02 s).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn, optim

from transduce.model import fast_precision

__all__ = ["Muon", "orthogonalised"]

MOMENTUM = 0.95
COEFFICIENTS = (
    3.4445,
    -4.7750,
    2.0315,
)  # of X, X X' X and (X X')^2 X, so that small singular values grow in few steps
N_STEPS = 5
EPS = 1e-7
RMS_OF_ADAM = 0.2  # of a typical step, over the learning rate (Liu et al., 2025, section 2.2)


class Muon(optim.Optimizer):
    """Steps whose singular values are nearly alike, of the size of Adam's."""

    def __init__(self, matrices: Iterable[nn.Parameter], *, weight_decay: float) -> None:
        """``weight_decay`` is decoupled; the caller sets the learning rate of the group before each step."""
        super().__init__(matrices, {"lr": 0.0, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Update the matrices that have gradients."""
        for group in self.param_groups:
            lr = group["lr"]
            alike = defaultdict[Any, list[nn.Parameter]](list)
            for weight in group["params"]:
                if weight.grad is not None:
                    # Matrices of one shape together are twice as fast in bf16, and no faster in fp32.
                    alike[weight.shape if fast_precision(weight.device) == "bf16" else weight].append(weight)
            for weights in alike.values():
                steps = orthogonalised(torch.stack([self._direction(weight) for weight in weights]))
                for weight, step in zip(weights, steps, strict=True):
                    weight.mul_(1 - lr * group["weight_decay"])
                    weight.add_(step, alpha=-lr * RMS_OF_ADAM * math.sqrt(max(weight.shape)))

    def _direction(self, weight: nn.Parameter) -> Tensor:
        """The gradient with Nesterov's momentum, which is brought up to date."""
        assert weight.grad is not None
        state = self.state[weight]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(weight.grad)
        momentum = state["momentum_buffer"].lerp_(weight.grad, 1 - MOMENTUM)
        return weight.grad.lerp(momentum, MOMENTUM)


def orthogonalised(matrices: Tensor) -> Tensor:
    """Return matrices of the same singular vectors with singular values of about 1, by Newton-Schulz iteration.

    It is computed in bf16 where the device has such arithmetic.
    """
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.bfloat16() if fast_precision(matrices.device) == "bf16" else matrices.float()
    x = x.mT if is_tall else x
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=EPS)
    a, b, c = COEFFICIENTS
    for _ in range(N_STEPS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if is_tall else x
