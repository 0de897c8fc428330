"""The machine that a command runs on: its device, and how its memory is handed out."""

from __future__ import annotations

import ctypes
import sys

from transduce.config import InferencePrecision
from transduce.errors import ConfigError, quoted

__all__ = ["chosen_device", "chosen_precision", "keep_freed_memory"]

# mallopt's names for its parameters, from glibc's malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4


def chosen_device(name: str) -> str:
    """The device that a name means, with memory set up for it. Raises ConfigError if torch does not know or have it."""
    from transduce.tasks.devices import usable_device

    device = usable_device(name)
    if device.type == "cpu":
        keep_freed_memory()
    return str(device)


def chosen_precision(name: str, device: str) -> InferencePrecision:
    """The precision that a name on the command line means. Raises ConfigError if it means none."""
    from transduce.model import fast_precision, has_int8_products

    match name:
        case "auto":
            return fast_precision(device)
        case "int8" if not has_int8_products(device):
            raise ConfigError(f"--precision int8: {device} has no products of int8 (on x86, VNNI); use bf16 or fp32")
        case "fp32" | "bf16" | "int8":
            return name
        case _:
            raise ConfigError(f"--precision should be fp32, bf16, int8 or auto, got {quoted(name)}")


def keep_freed_memory() -> None:
    """Ask the C library to keep freed memory for the next step instead of giving it back to the system.

    A step frees and asks for the same large buffers again; by default glibc returns them to the kernel each time, which
    clears their pages anew. Elsewhere than on glibc nothing is done.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)  # large buffers come from the heap, too
        mallopt(M_TRIM_THRESHOLD, -1)  # never; any number would be a limit
        mallopt(M_TOP_PAD, 64 << 20)
