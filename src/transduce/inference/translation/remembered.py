"""Lines, and parts of texts, that a memory has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from transduce.documents import Segment
from transduce.inference.translation.parts import ScoredText, Translation
from transduce.inference.translation.text_division import DividedText, DividedUnit
from transduce.memories import Memory
from transduce.text.markup import Unit

__all__ = ["asked", "is_plain", "known", "recalled", "with_known_parts"]


def known(memory: Memory, lines: Sequence[tuple[str | Unit, str]]) -> list[Translation | None]:
    """Return the translation that a memory has of each line, whose neighbours decide between several; None without.

    A line whose translation has a prefix, and a unit with tags, is not looked up.
    """
    texts = [asked(line) if isinstance(line, Unit) else line for line, _ in lines]
    return [
        None if prefix or (isinstance(line, Unit) and not _has_form_of_memory(line)) else _known(memory, line, *near)
        for (line, prefix), *near in zip(lines, texts, ["", *texts], [*texts[1:], ""], strict=False)
    ]


def recalled(memory: Memory, segments: Sequence[Segment]) -> list[str | None]:
    """Return what a memory has for the segments of a document, as the document takes it."""
    found = known(memory, [(each.unit, "") for each in segments])
    return [None if each is None else each.text for each in found]


def with_known_parts(memory: Memory, texts: Sequence[DividedText]) -> list[DividedText]:
    """Return divided texts with the translations of the lines, cells and paragraphs that a memory has in their places.

    Paragraphs with tags are not looked up.
    """
    units = [each.unit for text in texts for each in text.units]
    sources = list(map(asked, units))
    found = iter(
        memory.match(source, before, after) if _has_form_of_memory(unit) else None
        for unit, source, before, after in zip(units, sources, ["", *sources], [*sources[1:], ""], strict=False)
    )

    def part_of(part: str | DividedUnit) -> str | DividedUnit:
        if isinstance(part, str) or (match := next(found)) is None:
            return part
        return _written(part.unit, match.target)

    return [replace(text, parts=tuple(map(part_of, text.parts))) for text in texts]


def is_plain(unit: Unit) -> bool:
    """Whether a text has no markup: what is kept apart in it are only placeholders, which a memory knows itself."""
    return not unit.is_escaped and unit.escape is None


def _has_form_of_memory(unit: Unit) -> bool:
    return not unit.nodes or is_plain(unit)


def asked(unit: Unit) -> str:
    """Return what a memory is asked for: the text, with its placeholders."""
    return unit.raw.strip() if is_plain(unit) else unit.text


def _written(unit: Unit, target: str) -> str:
    """Return a translation from a memory in the place of its unit."""
    return unit.before + target + unit.after if unit.nodes else unit.put_back(target)


def _known(memory: Memory, line: str | Unit, text: str, before: str, after: str) -> Translation | None:
    match = memory.match(text, before, after)
    if match is None:
        return None
    target = _written(line, match.target) if isinstance(line, Unit) else match.target
    return Translation(text, (ScoredText(target, 0.0),), matches=(match,))
