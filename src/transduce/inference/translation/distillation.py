"""Sequence-level distillation and back-translation: translations of a text become training text.

A student learns one likely translation of each sentence, which is more regular than what people wrote: small models and
those that write several tokens at a time come closer to the teacher. Kim and Rush (2016). By back-translation, text of
the target language is the target of what a model of the other direction makes of it. Sennrich et al. (2016).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from transduce.inference.translation.parts import Translation
from transduce.text import normalise

__all__ = ["DistilledCounts", "distilled_pairs"]


@dataclass(slots=True)
class DistilledCounts:
    """What became of the lines of a text."""

    pairs: int = 0
    empty: int = 0  # left out: no line or no translation
    too_long: int = 0  # left out: the teacher read only the beginning

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that the command line prints."""
        return {"pairs": self.pairs, "empty": self.empty, "too_long": self.too_long}


def distilled_pairs(
    translations: Iterable[Translation], counts: DistilledCounts, *, is_back: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield source and translation of each line, normalised, so that neither has a tab; ``counts`` are added to.

    ``is_back`` yields translation and source: the line is the target of a pair to learn from.
    """
    for translation in translations:
        line, text = normalise(translation.source), normalise(translation.text)
        if translation.is_truncated:
            counts.too_long += 1
        elif not (line and text) or "untranslated" in translation.warnings:
            counts.empty += 1
        else:
            counts.pairs += 1
            yield (text, line) if is_back else (line, text)
