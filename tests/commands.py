"""What the fixture ``transduce`` (conftest.py) is and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


CommandLine = Callable[..., Outcome]
