"""Models that other models started from: a chain of model folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transduce.errors import CheckpointError, quoted

__all__ = ["Ancestor", "ancestry_as_json", "ancestry_from_json"]


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A model whose weights a run has started from."""

    name: str  # of its folder, and of the folder that holds it
    task: str
    sha256: str  # of its file of weights

    def __str__(self) -> str:
        return f"{self.name} ({self.task}, weights {self.sha256[:12]})"


def ancestry_as_json(ancestry: Sequence[Ancestor]) -> list[dict[str, Any]]:
    """Return the JSON values of a chain, the oldest model first."""
    return list(map(asdict, ancestry))


def ancestry_from_json(values: Mapping[str, Any], *, where: Path) -> tuple[Ancestor, ...]:
    """Return the chain in ``values["ancestry"]``, empty if there is none. Raises CheckpointError if it is invalid."""
    chain = values.get("ancestry", [])
    names = set(Ancestor.__slots__)
    if not isinstance(chain, list) or not all(
        isinstance(each, dict) and each.keys() == names and all(isinstance(value, str) for value in each.values())
        for each in chain
    ):
        raise CheckpointError(f"{where}: ancestry should be a list of {', '.join(sorted(names))}, got {quoted(chain)}")
    return tuple(Ancestor(**each) for each in chain)
