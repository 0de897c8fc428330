"""Names of devices and precisions."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from transduce.config import InferencePrecision
from transduce.errors import ConfigError, quoted
from transduce.imports import needing_train_extra
from transduce.inference.native.binding import kernels, library

if TYPE_CHECKING:
    import torch

__all__ = ["usable_device", "usable_precision"]

# Of NVIDIA's drivers on Linux, in WSL and on Windows, and of AMD's: without all of them PyTorch finds no GPU.
DRIVERS = ("/dev/nvidiactl", "/dev/dxg", r"C:\Windows\System32\nvcuda.dll", "/dev/kfd")


def usable_device(name: str | torch.device) -> str:
    """Return the full name of a device: ``cpu``, ``cuda``, ``cuda:1``, ...; ``auto`` is a GPU if there is one.

    PyTorch is asked of other devices than CPUs only. Raises ConfigError if it cannot use one.

    >>> usable_device("cpu")
    'cpu'
    """
    if name == "auto":
        name = "cuda" if _has_gpu() else "cpu"
    if str(name) == "cpu":
        return "cpu"
    with needing_train_extra(f"device {name}"):
        import torch

    try:
        torch.empty(0, device=name)
        return str(torch.device(name))
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {name} cannot be used: {reason}; use cpu or auto") from error


def _has_gpu() -> bool:
    """Whether PyTorch has a GPU; it is imported only where a driver is installed."""
    if not any(map(os.path.exists, DRIVERS)) or find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def usable_precision(name: str, device: str) -> InferencePrecision:
    """Return the precision of a name; ``auto`` is bf16 where it is fast.

    Raises ConfigError for an unknown name, or int8 on a device without it.
    """
    match name:
        case "auto" if device == "cpu" and library() is not None:
            return "bf16" if kernels() == "amx" else "fp32"
        case "auto":
            from transduce.model import fast_precision

            return fast_precision(device)
        case "int8" if not _has_int8_products(device):
            raise ConfigError(f"--precision int8: {device} has no int8 kernels (on x86, VNNI); use bf16 or fp32")
        case "fp32" | "bf16" | "int8":
            return name
        case _:
            raise ConfigError(f"--precision should be fp32, bf16, int8 or auto, got {quoted(name)}")


def _has_int8_products(device: str) -> bool:
    """Whether an engine multiplies in int8 on a device: the one in C does on every CPU."""
    if device == "cpu" and library() is not None:
        return True
    from transduce.model import has_int8_products

    return has_int8_products(device)
