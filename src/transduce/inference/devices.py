"""Names of devices and precisions."""

from __future__ import annotations

import torch

from transduce.config import InferencePrecision
from transduce.errors import ConfigError, quoted
from transduce.model import fast_precision, has_int8_products

__all__ = ["usable_device", "usable_precision"]


def usable_device(name: str | torch.device) -> torch.device:
    """Return the device of a name: ``cpu``, ``cuda``, ``cuda:1``, ...; ``auto`` is a GPU if there is one.

    Raises ConfigError if torch cannot use it.

    >>> usable_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
        return torch.device(name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {name} cannot be used: {reason}; use cpu or auto") from error


def usable_precision(name: str, device: str) -> InferencePrecision:
    """Return the precision of a name; ``auto`` is bf16 where it is fast.

    Raises ConfigError for an unknown name, or int8 on a device without it.
    """
    match name:
        case "auto":
            return fast_precision(device)
        case "int8" if not has_int8_products(device):
            raise ConfigError(f"--precision int8: {device} has no int8 kernels (on x86, VNNI); use bf16 or fp32")
        case "fp32" | "bf16" | "int8":
            return name
        case _:
            raise ConfigError(f"--precision should be fp32, bf16, int8 or auto, got {quoted(name)}")
