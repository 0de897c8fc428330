"""A text in which some spans are replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from transduce.documents.document import Segment
from transduce.documents.encodings import encoded
from transduce.text.markup import Unit

__all__ = ["SplicedText", "spliced"]


@dataclass(frozen=True, eq=False)
class SplicedText:
    """A document that is one text: its units are segments, and what is between them stays."""

    parts: Sequence[str | Unit]
    encoding: str = "utf-8"
    errors: str = "strict"  # of ``encoded``

    @cached_property
    def segments(self) -> list[Segment]:
        """Its units, in order."""
        segments, n_lines = list[Segment](), 1
        for part in self.parts:
            raw = part if isinstance(part, str) else part.raw
            if isinstance(part, Unit):
                segments.append(Segment(part, f"line {n_lines + raw[: len(raw) - len(raw.lstrip())].count(chr(10)):,}"))
            n_lines += raw.count("\n")
        return segments

    def written(self, targets: Sequence[str | None], *, tgt_language: str = "") -> bytes:
        """Return the text with translations."""
        return encoded(spliced(self.parts, targets), self.encoding, errors=self.errors)


def spliced(parts: Sequence[str | Unit], targets: Sequence[str | None]) -> str:
    """Return a text with the translation of each unit; None: as it was."""
    rest = iter(targets)
    pieces = [
        part if isinstance(part, str) else part.raw if (target := next(rest)) is None else target for part in parts
    ]
    assert next(rest, rest) is rest, "more translations than units"
    return "".join(pieces)
