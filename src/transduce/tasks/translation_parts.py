"""Translations of segments, and how they become the translation of a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transduce.text import Segment, join_segments

__all__ = ["ScoredText", "TranslatedSegment", "Translation", "put_together"]

_Chosen = tuple["_Chosen", "ScoredText"] | None  # of the segments before, which many share, and of the last one


@dataclass(frozen=True, slots=True)
class ScoredText:
    """One of the n best: its score is log-probability over length penalty, summed over the segments of a line."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class TranslatedSegment:
    """What became of a segment."""

    n_best: tuple[ScoredText, ...]  # best first; never empty
    is_truncated: bool  # it was too long to be read and lost its end
    is_long: bool  # it is longer than any source of the training text
    is_short: bool  # its translation is shorter than those of the training text
    lacks_masks: bool  # something that should stay was put in by its place, since the model did not write it


@dataclass(frozen=True, slots=True)
class Translation:
    """What became of one line."""

    source: str  # as it came
    n_best: tuple[ScoredText, ...]  # best first; never empty
    is_truncated: bool = False  # a source was too long to be read and lost its end
    is_long: bool = False  # a sentence is longer than any source of the training text
    is_short: bool = False  # the translation of a sentence is shorter than those of the training text
    lacks_masks: bool = False  # something that should stay was put in by its place, since the model did not write it
    n_segments: int = 1  # what was translated at a time: most often, the sentences

    @property
    def text(self) -> str:
        """The best translation."""
        return self.n_best[0].text

    @property
    def score(self) -> float:
        """Of the best translation."""
        return self.n_best[0].score


def put_together(
    line: str,
    segments: Sequence[Segment],
    translated: Sequence[TranslatedSegment],
    n_best: int,
    *,
    is_truncated: bool = False,
) -> Translation:
    """The translation of a line from those of its segments, with its spacing."""
    if len(segments) == 1:
        best = translated[0].n_best
    else:
        best = tuple(
            ScoredText(join_segments([each.text for each in choice], segments), sum(each.score for each in choice))
            for choice in _best_choices([each.n_best for each in translated], n_best)
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


def _best_choices(n_best_of: Sequence[Sequence[ScoredText]], n_best: int) -> list[list[ScoredText]]:
    """One of each segment's n best, in the ``n_best`` combinations with the greatest sums of scores, best first.

    The best combinations of some segments begin with the best ones of those before the last.
    """
    best: list[tuple[float, _Chosen]] = [(0.0, None)]
    for own in n_best_of:
        best = [(total + each.score, (before, each)) for total, before in best for each in own]
        best.sort(key=lambda entry: -entry[0])  # of equal ones, the first stays the first
        del best[n_best:]
    choices = []
    for _, chosen in best:
        choice = []
        while chosen is not None:
            chosen, last = chosen
            choice.append(last)
        choices.append(choice[::-1])
    return choices
