"""Character and word error rates: the least number of edits that turn an output into its reference, per unit of it.

    error rate = (substitutions + deletions + insertions) / units of the references

summed over all lines before the division. It can exceed 100 %.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from transduce.composition import composed
from transduce.edit_distance import edit_distance
from transduce.metrics.bleu import Score, require_parallel

__all__ = ["ErrorRates", "character_error_rate", "edit_distance", "error_rates", "plain_words", "word_error_rate"]


def character_error_rate(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Return the character error rate in percent: cased, with punctuation; runs of white space count as one space.

    Raises DataError if the numbers of hypotheses and references differ or are 0.

    >>> print(character_error_rate(["The cot."], ["The cat."]))
    12.50 (unit:character|case:mixed|punctuation:yes|norm:NFC|space:single|lines:1)
    """
    settings = "unit:character|case:mixed|punctuation:yes|norm:NFC|space:single"
    return _rate(hypotheses, references, lambda text: " ".join(composed(text).split()), settings)


def word_error_rate(hypotheses: Sequence[str], references: Sequence[str], *, plain: bool = False) -> Score:
    """Return the word error rate in percent; words are separated by white space.

    ``plain``: without case and punctuation, which cannot be heard, as is usual for speech.
    Raises DataError if the numbers of hypotheses and references differ or are 0.

    >>> print(word_error_rate(["the cat sat"], ["The cat sits."]))
    66.67 (unit:word|case:mixed|punctuation:yes|norm:NFC|lines:1)
    >>> print(word_error_rate(["the cat sat"], ["The cat sits."], plain=True))
    33.33 (unit:word|case:lower|punctuation:no|norm:NFC|lines:1)
    """
    settings = f"unit:word|case:{'lower|punctuation:no' if plain else 'mixed|punctuation:yes'}|norm:NFC"
    return _rate(hypotheses, references, plain_words if plain else lambda text: composed(text).split(), settings)


ASCII_MARKS = str.maketrans("\u2019\u2010\u2011", "'--")


def plain_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation except apostrophes and hyphens inside a word.

    >>> plain_words("Don't -- it's a well-known dog!")
    ["don't", "it's", 'a', 'well-known', 'dog']
    """
    kept = "".join(
        each if each in "'-" or unicodedata.category(each)[0] not in "PS" else " "
        for each in composed(text).translate(ASCII_MARKS).lower()
    )
    return [word for each in kept.split() if (word := each.strip("'-"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRates:
    """The error rates of a set of lines, and of parts of it by name."""

    character_error_rate: Score
    word_error_rate: Score
    exact: float  # percent of lines that are their reference, character by character in form NFC
    lines: int
    parts: dict[str, ErrorRates]  # "clean" and "noisy", of the generated images

    def as_json(self) -> dict[str, Any]:
        """Return the scores; those of a part begin with its name: ``{"clean_character_error_rate": ..., ...}``."""
        own = {
            "character_error_rate": asdict(self.character_error_rate),
            "word_error_rate": asdict(self.word_error_rate),
            "exact": self.exact,
            "lines": self.lines,
        }
        parts = {f"{name}_{key}": value for name, part in self.parts.items() for key, value in part.as_json().items()}
        return {**own, **parts}


def error_rates(
    hypotheses: Sequence[str], references: Sequence[str], *, parts: Sequence[str] = (), plain_words: bool = False
) -> ErrorRates:
    """Score ``hypotheses`` against one reference each; ``parts`` names the part that each line belongs to, if any.

    ``plain_words``: words without case and punctuation. Raises DataError as ``character_error_rate`` does.
    """
    require_parallel(hypotheses, references)
    of_part: dict[str, ErrorRates] = {}
    for name in dict.fromkeys(parts):
        rows = [row for row, part in enumerate(parts) if part == name]
        chosen = [hypotheses[row] for row in rows], [references[row] for row in rows]
        of_part[name] = error_rates(*chosen, plain_words=plain_words)
    n_exact = sum(map(str.__eq__, map(composed, hypotheses), map(composed, references)))
    return ErrorRates(
        character_error_rate=character_error_rate(hypotheses, references),
        word_error_rate=word_error_rate(hypotheses, references, plain=plain_words),
        exact=100 * n_exact / len(references),
        lines=len(references),
        parts=of_part,
    )


def _rate(
    hypotheses: Sequence[str], references: Sequence[str], units: Callable[[str], Sequence[Hashable]], settings: str
) -> Score:
    require_parallel(hypotheses, references)
    pairs = [(units(one), units(other)) for one, other in zip(hypotheses, references, strict=True)]
    n_edits = sum(edit_distance(*pair) for pair in pairs)
    n_units = sum(len(reference) for _, reference in pairs)
    return Score(100 * n_edits / max(1, n_units), f"{settings}|lines:{len(references)}")
