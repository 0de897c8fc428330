"""Muon: momentum whose steps are made orthogonal (Jordan et al., 2024). Not in the paper.

As ``torch.optim.Muon``, but for two things. That computes in bf16 on every device, and a CPU without bf16 arithmetic
takes 60 times as long for it (one thread of an AMD EPYC, a matrix of 256 x 1024: 1.2 s and 0.02 s). And it makes five
steps with one polynomial; three with the best ones (Amsel et al., 2025) come as near to orthogonal in two thirds of the
time.
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
# Of X, X X' X and (X X')^2 X, a step each: for singular values in the interval where the step before has left them, the
# polynomials nearest to 1; the first for 0.02 to 1 (Amsel et al., 2025). They end between 0.91 and 1.09.
COEFFICIENTS = (
    (7.7110, -22.1138, 16.2487),
    (3.2153, -2.4112, 0.5013),
    (2.2183, -1.5940, 0.4107),
)
ROUNDING = 1.01  # singular values that rounding puts above 1 would grow
EPS = 1e-7
# Of a typical step, over the learning rate. Liu et al. (2025, section 2.2) have 0.2 for the steps of Jordan et al.,
# which end at 0.9 on average.
RMS_OF_ADAM = 0.18


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

    Those below 0.02 of the largest, or so, stay smaller. It is computed in bf16 where the device has such arithmetic.
    """
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.bfloat16() if fast_precision(matrices.device) == "bf16" else matrices.float()
    x = x.mT if is_tall else x
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=EPS)
    gram = x @ x.mT
    # The root of the norm of X X' is nearer to the largest singular value than the norm of X, and not below it.
    size = ROUNDING * gram.norm(dim=(1, 2), keepdim=True).sqrt().clamp(min=EPS)
    x, gram = x / size, gram / size**2
    for step, (a, b, c) in enumerate(COEFFICIENTS):
        gram = gram if step == 0 else x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if is_tall else x
