"""A part of a chapter: a question and its answer in numbers."""

from __future__ import annotations

from dataclasses import dataclass

from transduce_paper.report import Table

__all__ = ["Study"]


@dataclass(frozen=True, slots=True)
class Study:
    """One question."""

    summary: str  # the finding as a clause, with the deciding number
    sections: tuple[str | Table, ...]  # its heading first
