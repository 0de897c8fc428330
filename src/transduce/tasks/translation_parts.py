"""Translations of segments, and how they become the translation of a line."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from transduce.text import Segment, joined

__all__ = ["ScoredText", "TranslatedSegment", "Translation", "put_together"]


@dataclass(frozen=True, slots=True)
class ScoredText:
    """One of the n best: its score is log-probability over length penalty, summed over the segments of a line."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class TranslatedSegment:
    """What became of a segment."""

    n_best: tuple[ScoredText, ...]  # best first; never empty
    is_cut: bool  # it was too long to be read and lost its end
    is_long: bool  # it is longer than any source of the training text
    is_short: bool  # its translation is shorter than those of the training text
    lacks_masks: bool  # something that should stay was put in by its place, since the model did not write it


@dataclass(frozen=True, slots=True)
class Translation:
    """What became of one line."""

    source: str  # as it came
    n_best: tuple[ScoredText, ...]  # best first; never empty
    is_cut: bool = False  # a source was too long to be read and lost its end
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
    line: str, segments: Sequence[Segment], translated: Sequence[TranslatedSegment], n_best: int
) -> Translation:
    """The translation of a line from those of its segments, with the spacing of the line."""
    if len(segments) == 1:
        best = translated[0].n_best
    else:
        best = tuple(
            ScoredText(joined([each.text for each in choice], segments), sum(each.score for each in choice))
            for choice in islice(_best_choices([each.n_best for each in translated]), n_best)
        )
    return Translation(
        line,
        best,
        is_cut=any(each.is_cut for each in translated),
        is_long=any(each.is_long for each in translated),
        is_short=any(each.is_short for each in translated),
        lacks_masks=any(each.lacks_masks for each in translated),
        n_segments=len(segments),
    )


def _best_choices(n_best_of: Sequence[Sequence[ScoredText]]) -> Iterator[list[ScoredText]]:
    """One of each segment's n best, in all combinations, the greatest sum of scores first.

    Each combination but the first comes of another by taking, at one segment, the next best.
    """

    def score(places: tuple[int, ...]) -> float:
        return sum(n_best[place].score for n_best, place in zip(n_best_of, places, strict=True))

    first = (0,) * len(n_best_of)
    waiting, seen = [(-score(first), first)], {first}
    while waiting:
        _, places = heapq.heappop(waiting)
        yield [n_best[place] for n_best, place in zip(n_best_of, places, strict=True)]
        for number, place in enumerate(places):
            after = (*places[:number], place + 1, *places[number + 1 :])
            if place + 1 < len(n_best_of[number]) and after not in seen:
                seen.add(after)
                heapq.heappush(waiting, (-score(after), after))
