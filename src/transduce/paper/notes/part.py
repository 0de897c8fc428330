"""What an experiment of the lecture notes hands to the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from transduce.paper.report import Draw, Table

__all__ = ["Part"]


@dataclass(frozen=True, slots=True)
class Part:
    """One chapter: Markdown text and tables in the order of reading, and pictures by the names of their files."""

    sections: tuple[str | Table, ...]
    drawings: Mapping[str, Draw] = field(default_factory=dict)
