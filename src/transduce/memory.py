"""Free memory of a device, and errors that mean there is too little."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from transduce.errors import TransduceError
from transduce.machine_limits import free_memory

if TYPE_CHECKING:
    import torch

__all__ = ["BYTES_PER_WEIGHT", "USABLE_FRACTION", "format_bytes", "free_bytes", "is_out_of_memory", "require_free"]

BYTES_PER_WEIGHT = 4  # also of a gradient or a moment: always fp32, whatever the precision of matrix products
USABLE_FRACTION = 0.9  # of the free memory; the rest is for the workspaces of kernels


def free_bytes(device: str | torch.device) -> int | None:
    """Return the bytes available for new tensors on a device; None if unknown."""
    kind = str(device).partition(":")[0]
    if kind == "cuda":
        import torch

        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    free = free_memory() if kind == "cpu" else None
    return None if free is None else free.n_bytes


def require_free(
    n_bytes: int, device: str | torch.device, *, what: str, help: str, error: type[TransduceError], n_processes: int = 1
) -> None:
    """Raise ``error`` if ``what`` needs more than the free memory of a device; no check if that is unknown.

    ``n_processes`` of this machine need ``n_bytes`` each; on CPUs they share the memory.
    """
    free = free_bytes(device)
    needed = n_bytes * (n_processes if str(device).startswith("cpu") else 1)
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
    torch = sys.modules.get("torch")
    of_torch = () if torch is None else (torch.OutOfMemoryError,)
    signs = ("DefaultCPUAllocator", "bad_alloc", "Cannot allocate memory")
    return isinstance(error, (MemoryError, *of_torch)) or any(sign in str(error) for sign in signs)
