"""A chapter of the report on the lecture notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from transduce_paper.report import Claim, Draw, Table

__all__ = ["Part"]


@dataclass(frozen=True, slots=True)
class Part:
    """One check of the notes: its finding, then text and tables in reading order, and its drawings."""

    title: str
    question: str  # what is checked
    summary: str  # the finding as a clause, with the deciding number
    finding: str  # one sentence
    sections: tuple[str | Table, ...]
    drawings: Mapping[str, Draw] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
