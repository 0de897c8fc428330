"""Lines that a memory has."""

from __future__ import annotations

from collections.abc import Sequence

from transduce.documents import Segment
from transduce.inference.translation.parts import ScoredText, Translation
from transduce.memories import Memory
from transduce.text.markup import Unit

__all__ = ["known", "recalled"]


def known(memory: Memory, lines: Sequence[tuple[str | Unit, str]]) -> list[Translation | None]:
    """Return the translation that a memory has of each line, whose neighbours decide between several; None without.

    A line whose translation has a prefix, and a unit with tags, is not looked up.
    """
    texts = [line.text if isinstance(line, Unit) else line for line, _ in lines]
    return [
        None if prefix or (isinstance(line, Unit) and line.nodes) else _known(memory, line, text, before, after)
        for (line, prefix), text, before, after in zip(lines, texts, ["", *texts], [*texts[1:], ""], strict=False)
    ]


def recalled(memory: Memory, segments: Sequence[Segment]) -> list[str | None]:
    """Return what a memory has for the segments of a document, as the document takes it."""
    found = known(memory, [(each.unit, "") for each in segments])
    return [None if each is None else each.text for each in found]


def _known(memory: Memory, line: str | Unit, text: str, before: str, after: str) -> Translation | None:
    match = memory.match(text, before, after)
    if match is None:
        return None
    target = line.put_back(match.target) if isinstance(line, Unit) else match.target
    return Translation(text, (ScoredText(target, 0.0),), matches=(match,))
