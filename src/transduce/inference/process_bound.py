"""What belongs to the process that loaded it."""

from __future__ import annotations

from typing import Any, Self

__all__ = ["ProcessBound"]


class ProcessBound:
    """Objects whose weights are laid out for this process: they are shared by threads, not pickled or copied deeply."""

    def __copy__(self) -> Self:
        """Return another object with the same attributes."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __reduce_ex__(self, protocol: object) -> Any:
        """Raise TypeError, also for ``copy.deepcopy``."""
        name = type(self).__name__
        raise TypeError(
            f"a {name} is neither pickled nor copied deeply; threads can share it, and another process loads the model"
            f" folder: {name}.load(folder)"
        )
