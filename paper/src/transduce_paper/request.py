"""Options of a reproduction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """Options of ``transduce paper``."""

    sentence: str | None = None  # shown in the attention figures
    treebank: Path | None = None  # folder of the Penn Treebank, for Table 4 at the paper's scale
    rows: tuple[str, ...] = ()  # of Table 3; empty: all
    model: Path | None = None  # the model folder that figures 3 to 5 show, in place of one of their own
    jobs: int = 1  # runs of Tables 2 and 3 that are trained at once
    only_recorded: bool = False  # report what has a record so far; nothing is trained
