"""Memory: how much an operation takes, how much there is, and a straight line from small batches to large ones."""

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
    "SPARE",
    "LinearFit",
    "PeakMemory",
    "format_bytes",
    "free_bytes",
    "is_out_of_memory",
    "require_free",
    "return_freed_pages",
]  # fmt: skip

SPARE = 0.9  # of the free memory is what may be planned for: kernels have buffers of their own


def return_freed_pages() -> None:
    """Give the system what the C library holds and nobody uses; elsewhere than on glibc nothing is done.

    Batches are of many sizes, so freed memory falls into pieces, of which ever fewer fit: within hours a process comes
    to hold several times what it needs.
    """
    if sys.platform.startswith("linux"):
        malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if malloc_trim is not None:
            malloc_trim(0)


class PeakMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The most bytes that new tensors have held at once while the block lasted, whatever the device.

    >>> with PeakMemory() as peak:
    ...     _ = torch.zeros(10) + torch.ones(10)
    >>> peak.bytes
    120
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = self._held = 0
        self._seen: set[int] = set()

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Called for each operation."""
        before = {
            tensor.untyped_storage()._cdata for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, Tensor)
        }
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in before and storage._cdata not in self._seen:
                    self._take(storage)
        return out

    def _take(self, storage: torch.UntypedStorage) -> None:
        key, n_bytes = storage._cdata, storage.nbytes()
        self._seen.add(key)
        self._held += n_bytes
        self.bytes = max(self.bytes, self._held)
        weakref.finalize(storage, self._let_go, key, n_bytes)

    def _let_go(self, key: int, n_bytes: int) -> None:
        self._seen.discard(key)
        self._held -= n_bytes


@dataclass(frozen=True, slots=True)
class LinearFit:
    """Bytes as a straight line over the number of rows."""

    at_none: float
    for_each: float

    @classmethod
    def from_points(cls, first: tuple[int, int], second: tuple[int, int]) -> LinearFit:
        """The line through two measurements (rows, bytes).

        >>> LinearFit.from_points((1, 30), (3, 50)).at(10)
        120.0
        """
        for_each = (second[1] - first[1]) / (second[0] - first[0])
        return cls(first[1] - for_each * first[0], for_each)

    def at(self, n_rows: int) -> float:
        """Bytes for ``n_rows``."""
        return self.at_none + self.for_each * n_rows

    def fraction_that_fits(self, n_rows: int, n_bytes: float) -> float:
        """The greatest part of ``n_rows`` that stays within ``n_bytes``; 0 where nothing does."""
        if self.for_each <= 0:
            return float(self.at_none <= n_bytes)
        return min(max((n_bytes - self.at_none) / self.for_each / n_rows, 0.0), 1.0)


def free_bytes(device: torch.device) -> int | None:
    """What new tensors on a device may take; None where the system does not tell."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    free = free_memory() if device.type == "cpu" else None
    return None if free is None else free.n_bytes


def require_free(
    n_bytes: int, device: torch.device, *, what: str, help: str, error: type[TransduceError], n_processes: int = 1
) -> None:
    """Raises ``error`` if ``what`` needs more than is free on a device; where the system does not tell, it is tried.

    ``n_processes`` of this machine need as much each, and share it where it is that of CPUs.
    """
    free = free_bytes(device)
    needed = n_bytes * (n_processes if device.type == "cpu" else 1)
    if free is not None and needed > SPARE * free:
        raise error(f"{what} needs about {format_bytes(needed)} of memory, {format_bytes(free)} are free; {help}")


def format_bytes(n_bytes: float) -> str:
    """A size for people.

    >>> format_bytes(31_200_000_000), format_bytes(4_000_000)
    ('31.2 GB', '4 MB')
    """
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether there was no memory to give: torch has an error of its own for GPUs, and for CPUs a RuntimeError."""
    words = ("DefaultCPUAllocator", "bad_alloc", "Cannot allocate memory")
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(each in str(error) for each in words)
