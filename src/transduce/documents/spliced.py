"""A text in which some spans are replaced.

Its parts are strings that stay, units, and regions: parts with rules of their own, such as a string of JSON with
escapes. Texts inside tags, such as the alternative text of an image, are embedded: a mark holds their place, so that a
tag can move in a translation with its texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from transduce.documents.document import Segment
from transduce.documents.encodings import encoded
from transduce.errors import DataError
from transduce.text import needs_translation
from transduce.text.markup import Unit

__all__ = ["Embedded", "Part", "Region", "SplicedText", "spliced", "with_regions", "with_words"]

_SIGNS = [*map(chr, range(0xFDD1, 0xFDF0))]  # characters that Unicode leaves to programs


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A part of a text that is written by rules of its own."""

    raw: str  # as it is in the source
    parts: Sequence[Part]
    write: Callable[[str], str] = str  # from the joined parts to what stands in the text
    context: str = ""  # of its segments


Part = str | Unit | Region


class Embedded:
    """The texts inside the tags of a document."""

    def __init__(self, text: str) -> None:
        """``text`` is the document, in which no mark may occur, as a character or its escape."""
        lowered = text.lower()
        sign = next((sign for sign in _SIGNS if sign not in text and rf"\u{ord(sign):x}" not in lowered), None)
        if sign is None:
            raise DataError("it has every character from U+FDD1 to U+FDEF, which no text has; remove them")
        self._sign, self._regions = sign, list[Region]()
        self._marked = re.compile(f"{sign}([0-9]+){sign}")

    def mark(self, region: Region) -> str:
        """Return what holds the place of a region."""
        self._regions.append(region)
        return f"{self._sign}{len(self._regions) - 1}{self._sign}"

    def within(self, text: str) -> Iterator[tuple[int, Region]]:
        """Yield the regions whose marks are in a text, in order, and where the marks are."""
        if self._sign in text:
            for match in self._marked.finditer(text):
                yield match.start(), self._regions[int(match[1])]

    def filled(self, text: str, written: Callable[[Region], str]) -> str:
        """Return a text with regions in place of their marks."""
        if self._sign not in text:
            return text
        return self._marked.sub(lambda match: written(self._regions[int(match[1])]), text)


@dataclass(frozen=True, eq=False)
class SplicedText:
    """A document that is one text: its units are segments, and what is between them stays."""

    parts: Sequence[Part]
    encoding: str = "utf-8"
    errors: str = "strict"  # of ``encoded``
    embedded: Embedded = field(default_factory=lambda: Embedded(""))
    with_language: Callable[[str, str], str] = lambda text, _language: text  # names the language of the text
    first_line: int = 1  # its number, for people
    placeholders: tuple[str, ...] = ()  # of its segments

    @cached_property
    def segments(self) -> list[Segment]:
        """Its units, in order; the texts inside tags before the unit that has them."""
        segments, n_lines = list[Segment](), self.first_line
        for part in self.parts:
            n_lines += self._gather(part, n_lines, "", segments)
        return segments

    def _gather(self, part: Part, line: int, context: str, segments: list[Segment]) -> int:
        """Add the segments of a part, which begins in a line; return the number of line ends in it."""
        raw, n_more = (part if isinstance(part, str) else part.raw), 0
        for start, region in self.embedded.within(raw):
            n_more += self._gather(region, line + raw.count("\n", 0, start) + n_more, context, segments)
        if isinstance(part, Unit):
            n_before = raw[: len(raw) - len(raw.lstrip())].count("\n")
            segments.append(Segment(part, f"line {line + n_before:,}", context=context, placeholders=self.placeholders))
        elif isinstance(part, Region):
            for each in part.parts:
                self._gather(each, line, part.context or context, segments)
        return raw.count("\n") + n_more

    def written(self, targets: Sequence[str | None], *, tgt_language: str = "") -> bytes:
        """Return the text with translations."""
        text = spliced(self.parts, targets, self.embedded)
        if tgt_language and any(target is not None for target in targets):
            text = self.with_language(text, tgt_language)
        return encoded(text, self.encoding, errors=self.errors)


def spliced(parts: Sequence[Part], targets: Sequence[str | None], embedded: Embedded | None = None) -> str:
    """Return a text with the translation of each unit; None: as it was."""
    rest = iter(targets)

    def written(part: Part) -> tuple[str, bool]:
        """Return a part, and whether it is another."""
        raw = part if isinstance(part, str) else part.raw
        inner = [written(region) for _, region in embedded.within(raw)] if embedded else []
        if isinstance(part, Region):
            pieces = [written(each) for each in part.parts]
            if not any(is_other for _, is_other in pieces):
                return raw, False
            return part.write("".join(text for text, _ in pieces)), True
        target = next(rest) if isinstance(part, Unit) else None
        text = raw if target is None else target
        if embedded and inner:
            texts = {id(region): each for (_, region), (each, _) in zip(embedded.within(raw), inner, strict=True)}
            text = embedded.filled(text, lambda region: texts[id(region)])
        return text, target is not None or any(is_other for _, is_other in inner)

    pieces = [written(part)[0] for part in parts]
    assert next(rest, rest) is rest, "more translations than units"
    return "".join(pieces)


def with_regions(text: str, regions: Iterable[tuple[int, Region]]) -> list[Part]:
    """Return the parts of a text: regions, each with where it begins, in order, and what stands between them."""
    parts, position = list[Part](), 0
    for start, region in regions:
        parts += (text[position:start], region)
        position = start + len(region.raw)
    return [*parts, text[position:]]


def with_words(part: str | Unit) -> str | Unit:
    """Return a part as it is, or as a string if there is nothing in it to translate."""
    return part.raw if isinstance(part, Unit) and not needs_translation(part.text) else part
