"""The device that a name means."""

from __future__ import annotations

import torch

from transduce.errors import ConfigError

__all__ = ["usable_device"]


def usable_device(name: str | torch.device) -> torch.device:
    """``cpu``, ``cuda``, ``cuda:1``, ...; ``auto`` is a GPU where there is one.

    Raises ConfigError if torch does not know or have it.

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
        raise ConfigError(f"device {name} cannot be used: {reason}; use cpu, or auto for what there is") from error
