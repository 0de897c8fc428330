"""Translation memories: what was translated before is found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.memories.building import write_memory
    from transduce.memories.memory import Match, Memory
    from transduce.memories.reading import find_memory, open_memory, pairs_of_file

__all__ = ["Match", "Memory", "find_memory", "open_memory", "pairs_of_file", "write_memory"]

imported_on_use(__name__)
