"""Memory of training: measure the peak of a block, and extrapolate linearly from small batches."""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

__all__ = ["LinearFit", "PeakMemory", "return_freed_pages"]


def return_freed_pages() -> None:
    """Return freed heap pages to the system (``malloc_trim``); no effect without glibc.

    Batches of varying sizes fragment the heap: within hours a process would hold several times what it needs.
    """
    if sys.platform.startswith("linux"):
        malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if malloc_trim is not None:
            malloc_trim(0)


class PeakMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Context manager that measures the peak bytes of tensors allocated in its block, on any device.

    >>> with PeakMemory() as peak:
    ...     _ = torch.zeros(10) + torch.ones(10)
    >>> peak.bytes
    120
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = self._live_bytes = 0
        self._live: set[int] = set()

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Track the new storages of one operation."""
        argument_storages = {
            tensor.untyped_storage()._cdata for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, Tensor)
        }
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in argument_storages and storage._cdata not in self._live:
                    self._add(storage)
        return out

    def _add(self, storage: torch.UntypedStorage) -> None:
        key, n_bytes = storage._cdata, storage.nbytes()
        self._live.add(key)
        self._live_bytes += n_bytes
        self.bytes = max(self.bytes, self._live_bytes)
        weakref.finalize(storage, self._remove, key, n_bytes)

    def _remove(self, key: int, n_bytes: int) -> None:
        self._live.discard(key)
        self._live_bytes -= n_bytes


@dataclass(frozen=True, slots=True)
class LinearFit:
    """Bytes as a linear function of the number of rows."""

    intercept: float
    slope: float

    @classmethod
    def from_points(cls, first: tuple[int, int], second: tuple[int, int]) -> LinearFit:
        """Fit the line through two measurements (rows, bytes).

        >>> LinearFit.from_points((1, 30), (3, 50)).predict(10)
        120.0
        """
        slope = (second[1] - first[1]) / (second[0] - first[0])
        return cls(first[1] - slope * first[0], slope)

    def predict(self, n_rows: int) -> float:
        """Return the bytes for ``n_rows``."""
        return self.intercept + self.slope * n_rows

    def fraction_that_fits(self, n_rows: int, n_bytes: float) -> float:
        """Return the largest fraction of ``n_rows`` that fits into ``n_bytes``; 0 if nothing fits."""
        if self.slope <= 0:
            return float(self.intercept <= n_bytes)
        return min(max((n_bytes - self.intercept) / self.slope / n_rows, 0.0), 1.0)
