"""Device, precision and allocator settings of a command."""

from __future__ import annotations

from transduce.config import InferencePrecision
from transduce.machine_limits import keep_freed_memory

__all__ = ["chosen_device", "chosen_precision", "keep_freed_memory"]


def chosen_device(name: str) -> str:
    """Resolve ``--device`` and configure the allocator. Raises ConfigError for an unknown or missing device."""
    from transduce.inference.devices import usable_device

    device = usable_device(name)
    if device == "cpu":
        keep_freed_memory()
    return device


def chosen_precision(name: str, device: str) -> InferencePrecision:
    """Resolve ``--precision``. Raises ConfigError for an unknown name, or int8 on a device without it."""
    from transduce.inference.devices import usable_precision

    return usable_precision(name, device)
