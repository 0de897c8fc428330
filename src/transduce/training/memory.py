"""Memory: measure the peak of a block, query what is free, and extrapolate linearly from small batches."""

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

from transduce.errors import TransduceError
from transduce.training.machine_limits import free_memory

__all__ = [
    "USABLE_FRACTION",
    "LinearFit",
    "PeakMemory",
    "format_bytes",
    "free_bytes",
    "is_out_of_memory",
    "require_free",
    "return_freed_pages",
]  # fmt: skip

USABLE_FRACTION = 0.9  # of the free memory; the rest is for the workspaces of kernels


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


def free_bytes(device: torch.device) -> int | None:
    """Return the bytes available for new tensors on a device; None if unknown."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    free = free_memory() if device.type == "cpu" else None
    return None if free is None else free.n_bytes


def require_free(
    n_bytes: int, device: torch.device, *, what: str, help: str, error: type[TransduceError], n_processes: int = 1
) -> None:
    """Raise ``error`` if ``what`` needs more than the free memory of a device; no check if that is unknown.

    ``n_processes`` of this machine need ``n_bytes`` each; on CPUs they share the memory.
    """
    free = free_bytes(device)
    needed = n_bytes * (n_processes if device.type == "cpu" else 1)
    if free is not None and needed > USABLE_FRACTION * free:
        raise error(f"{what} needs about {format_bytes(needed)} of memory, {format_bytes(free)} are free; {help}")


def format_bytes(n_bytes: float) -> str:
    """Format a size for people.

    >>> format_bytes(31_200_000_000), format_bytes(4_000_000)
    ('31.2 GB', '4 MB')
    """
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means out of memory; for CPUs torch raises a plain RuntimeError."""
    signs = ("DefaultCPUAllocator", "bad_alloc", "Cannot allocate memory")
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(sign in str(error) for sign in signs)
