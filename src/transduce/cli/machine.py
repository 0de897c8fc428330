"""Device and allocator settings of a command."""

from __future__ import annotations

from transduce.machine_limits import keep_freed_memory

__all__ = ["chosen_device"]


def chosen_device(name: str) -> str:
    """Resolve ``--device`` and configure the allocator. Raises ConfigError for an unknown or missing device."""
    from transduce.inference.devices import usable_device

    device = usable_device(name)
    if device == "cpu":
        keep_freed_memory()
    return device
