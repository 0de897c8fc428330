"""Dropout. Section 5.4 ("Residual Dropout")."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["Dropout", "dropout"]

RESOLUTION = 2**15  # distinct values of the random bits of one element
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # integer types by size in bytes


def dropout(x: Tensor, p_drop: float, *, training: bool) -> Tensor:
    """Zero each element with probability ``p_drop`` and scale the others by 1 / (1 - p_drop); identity in evaluation.

    Deviates: on a CPU each element uses 15 random bits, four elements per draw, so ``p_drop`` is rounded to a multiple
    of 1 / 32,768. torch draws 53 bits per element, sequentially, which takes a tenth of a training step. The bits come
    from a faster generator of NumPy, seeded by torch's generator. Compiled models use torch's.

    >>> dropout(torch.ones(2), 0.5, training=False).tolist()
    [1.0, 1.0]
    """
    if not training or p_drop == 0.0:
        return x
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(x, p_drop, training=True)
    n_dropped = min(round(p_drop * RESOLUTION), RESOLUTION - 1)  # not all: the scale would be infinite
    return x * _factor(x.shape, n_dropped, scale=RESOLUTION / (RESOLUTION - n_dropped), dtype=x.dtype)


def _factor(shape: torch.Size, n_dropped: int, *, scale: float, dtype: torch.dtype) -> Tensor:
    """0 or ``scale`` for each element, by integer operations: comparisons and booleans are several times slower."""
    draws = _random_int16(shape.numel()).view(shape).bitwise_and_(RESOLUTION - 1)
    is_kept = draws.sub_(n_dropped).bitwise_not_().bitwise_right_shift_(15)  # the sign bit in all bits: -1 or 0
    bits = torch.tensor(scale, dtype=dtype).view(INTEGERS[dtype.itemsize])
    return is_kept.to(bits.dtype).bitwise_and_(bits).view(dtype)


def _random_int16(n: int) -> Tensor:
    """``n`` uniform random int16, determined by ``torch.manual_seed``."""
    seed = int(torch.randint(2**62, ()))
    draws = np.random.SFC64(seed).random_raw((n + 3) // 4)
    return torch.from_numpy(draws.view(np.int16))[:n]


class Dropout(nn.Module):
    """``dropout`` as a layer."""

    def __init__(self, p_drop: float) -> None:
        super().__init__()
        self.p_drop = p_drop

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return dropout(x, self.p_drop, training=self.training)

    def extra_repr(self) -> str:
        """The probability that ``print(model)`` shows."""
        return f"p_drop={self.p_drop}"
