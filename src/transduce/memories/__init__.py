"""Translation memories: what was translated before is found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.memories.building import write_memory
    from transduce.memories.memory import Match, Memory

__all__ = ["Match", "Memory", "write_memory"]

imported_on_use(__name__)
