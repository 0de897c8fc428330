"""Lines that a memory has."""

from __future__ import annotations

from collections.abc import Sequence

from transduce.inference.translation.parts import ScoredText, Translation
from transduce.memories import Memory
from transduce.text.markup import Unit

__all__ = ["known"]


def known(memory: Memory, lines: Sequence[tuple[str | Unit, str]]) -> list[Translation | None]:
    """Return the translation that a memory has of each line, whose neighbours decide between several; None without.

    A line whose translation has a prefix, and a unit with tags, is not looked up.
    """
    texts = [line.text if isinstance(line, Unit) else line for line, _ in lines]
    return [
        None if prefix or (isinstance(line, Unit) and line.nodes) else _known(memory, text, before, after)
        for (line, prefix), text, before, after in zip(lines, texts, ["", *texts], [*texts[1:], ""], strict=False)
    ]


def _known(memory: Memory, text: str, before: str, after: str) -> Translation | None:
    match = memory.match(text, before, after)
    return None if match is None else Translation(text, (ScoredText(match.target, 0.0),), matches=(match,))
