"""Translations of segments, and their combination into the translation of a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transduce.text import Segment, join_segments

__all__ = ["ScoredText", "TranslatedSegment", "Translation", "combine_segments", "distinct_texts"]

_Path = tuple["_Path", "ScoredText"] | None  # linked list: (choices for earlier segments, choice for the last)


@dataclass(frozen=True, slots=True)
class ScoredText:
    """An n-best translation; the score is log-probability over length penalty, summed over the segments of a line."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class TranslatedSegment:
    """Translation of a segment."""

    n_best: tuple[ScoredText, ...]  # best first; never empty
    is_truncated: bool  # the source was truncated to the model's maximum
    is_long: bool  # the source is longer than any in training
    is_short: bool  # target / source length is below that of almost all training pairs
    lacks_masks: bool  # the model dropped a mask; its content was inserted at the source's relative position


@dataclass(frozen=True, slots=True)
class Translation:
    """Translation of a line; each flag of ``TranslatedSegment`` is true if it is true of any segment."""

    source: str  # unchanged
    n_best: tuple[ScoredText, ...]  # best first; never empty
    is_truncated: bool = False
    is_long: bool = False
    is_short: bool = False
    lacks_masks: bool = False
    n_segments: int = 1  # usually the number of sentences

    @property
    def text(self) -> str:
        """The best translation."""
        return self.n_best[0].text

    @property
    def score(self) -> float:
        """Score of the best translation."""
        return self.n_best[0].score


def combine_segments(
    line: str,
    segments: Sequence[Segment],
    translated: Sequence[TranslatedSegment],
    n_best: int,
    *,
    is_truncated: bool = False,
) -> Translation:
    """Join the translations of the segments of a line, with the spacing of the source."""
    if len(segments) == 1:
        best = distinct_texts(translated[0].n_best)
    else:
        best = distinct_texts(
            ScoredText(join_segments([each.text for each in choice], segments), sum(each.score for each in choice))
            for choice in _best_combinations([each.n_best for each in translated], n_best)
        )
    return Translation(
        line,
        best,
        is_truncated=is_truncated or any(each.is_truncated for each in translated),
        is_long=any(each.is_long for each in translated),
        is_short=any(each.is_short for each in translated),
        lacks_masks=any(each.lacks_masks for each in translated),
        n_segments=len(segments),
    )


def distinct_texts(candidates: Iterable[ScoredText]) -> tuple[ScoredText, ...]:
    """Return the candidates without those whose text an earlier one has: different tokens may give the same text.

    >>> [each.score for each in distinct_texts([ScoredText("a", -1.0), ScoredText("b", -2.0), ScoredText("a", -3.0)])]
    [-1.0, -2.0]
    """
    first_with: dict[str, ScoredText] = {}
    for each in candidates:
        first_with.setdefault(each.text, each)
    return tuple(first_with.values())


def _best_combinations(n_best_of: Sequence[Sequence[ScoredText]], n_best: int) -> list[list[ScoredText]]:
    """Return the ``n_best`` combinations of one candidate per segment with the greatest sums of scores, best first.

    Pruning after each segment is exact: the best combinations extend the best ones of the earlier segments.
    """
    best: list[tuple[float, _Path]] = [(0.0, None)]
    for candidates in n_best_of:
        best = [(total + each.score, (path, each)) for total, path in best for each in candidates]
        best.sort(key=lambda entry: -entry[0])  # stable: ties keep their order
        del best[n_best:]
    combinations = []
    for _, path in best:
        combination = []
        while path is not None:
            path, last = path
            combination.append(last)
        combinations.append(combination[::-1])
    return combinations
