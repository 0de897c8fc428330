"""What an objective measures beside its loss: sums and numbers of values, kept in checkpoints."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

__all__ = ["Measures"]

STATE = "measured."  # common beginning of the names of the tensors in checkpoints


class Measures:
    """The values of each measure since they were last taken."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, float]] = {}  # measure: sum and number of values

    def add(self, **values: float | Tensor) -> None:
        """Add a value of some measures, or a tensor of values."""
        for name, value in values.items():
            total, n = self._sums.get(name, (0.0, 0.0))
            new = torch.as_tensor(value).detach().cpu().double()
            self._sums[name] = total + float(new.sum()), n + new.numel()

    def taken(self) -> dict[str, tuple[float, float]]:
        """Return sum and number of the values of each measure, and forget them."""
        sums, self._sums = self._sums, {}
        return sums

    def state(self) -> dict[str, Tensor]:
        """Return the sums as tensors by name."""
        return {f"{STATE}{name}": torch.tensor(sums, dtype=torch.float64) for name, sums in self._sums.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Load those tensors of a state that are a result of ``state``."""
        self._sums = {
            name.removeprefix(STATE): (float(each[0]), float(each[1]))
            for name, each in state.items()
            if name.startswith(STATE)
        }
