"""Device, precision and allocator settings of a command."""

from __future__ import annotations

import ctypes
import sys

from transduce.config import InferencePrecision
from transduce.errors import ConfigError, quoted

__all__ = ["chosen_device", "chosen_precision", "keep_freed_memory"]

# Parameters of mallopt, from glibc's malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4


def chosen_device(name: str) -> str:
    """Resolve ``--device`` and configure the allocator. Raises ConfigError for an unknown or missing device."""
    from transduce.inference.devices import usable_device

    device = usable_device(name)
    if device.type == "cpu":
        keep_freed_memory()
    return str(device)


def chosen_precision(name: str, device: str) -> InferencePrecision:
    """Resolve ``--precision``. Raises ConfigError for an unknown name, or int8 on a device without it."""
    from transduce.model import fast_precision, has_int8_products

    match name:
        case "auto":
            return fast_precision(device)
        case "int8" if not has_int8_products(device):
            raise ConfigError(f"--precision int8: {device} has no int8 kernels (on x86, VNNI); use bf16 or fp32")
        case "fp32" | "bf16" | "int8":
            return name
        case _:
            raise ConfigError(f"--precision should be fp32, bf16, int8 or auto, got {quoted(name)}")


def keep_freed_memory() -> None:
    """Make glibc keep freed memory instead of returning it to the system; without glibc, do nothing.

    Each step frees and allocates the same large buffers. By default glibc returns them to the kernel, which clears the
    pages again.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)  # allocate large buffers on the heap
        mallopt(M_TRIM_THRESHOLD, -1)  # never return memory
        mallopt(M_TOP_PAD, 64 << 20)
