"""What is asked of a reproduction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """The whole, or a form for tests that takes seconds and shows only that it works; and what a user has."""

    is_short: bool = False
    sentence: str | None = None  # for the figures of attention
    treebank: Path | None = None  # the folder of the Penn Treebank, for Table 4 at the paper's scale
