"""Device names."""

from __future__ import annotations

import torch

from transduce.errors import ConfigError

__all__ = ["usable_device"]


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
