"""Translations of sentences, the best combinations of them, and the translation of a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Literal, get_args

from transduce.inference.translation.word_links import Link
from transduce.memories import Match
from transduce.text.pieces import Piece

__all__ = [
    "FLAGS", "Flag", "ScoredText", "TranslatedSegment", "Translation", "best_combinations", "distinct_texts",
    "in_order",
]  # fmt: skip

# What may be wrong with a translation:
Flag = Literal[
    "source-cut",  # the source is longer than the model reads: its end is not translated
    "output-cut",  # the translation reached the greatest length of an output: its end may be missing
    "untranslated",  # no hypothesis had a word: a sentence stands as in the source
    "repeated",  # every hypothesis repeats words more often than the source: what is too much is left out
    "lost",  # numbers, URLs, placeholders or tags of the source are missing
    "mended",  # the model dropped or changed such a string: it was put in afterwards
    "guessed",  # the words of a tag were not found in the translation: its place is guessed
    "terms",  # a term is not as its list has it, or a phrase is there that was to be avoided
    "long",  # a sentence is longer than any in training
    "short",  # target / source length is below that of almost all training pairs
    "unlike",  # the source is unlike the training text, by its words or by how sure the model is
]
FLAGS: tuple[Flag, ...] = get_args(Flag)

_Path = tuple["_Path", "ScoredText"] | None  # linked list: (choices for earlier segments, choice for the last)


@dataclass(frozen=True, slots=True)
class ScoredText:
    """An n-best translation; the score is log-probability over length penalty, summed over the sentences of a text."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class TranslatedSegment:
    """Translation of a sentence or clause."""

    n_best: tuple[ScoredText, ...]  # best first, equal texts once; never empty
    warnings: tuple[Flag, ...] = ()  # of the best
    mean_log_prob: float = nan  # of what was found first, in nats per token, EOS included; NaN if not scored


@dataclass(frozen=True, slots=True)
class Translation:
    """Translation of a text, such as a line."""

    source: str  # unchanged
    n_best: tuple[ScoredText, ...]  # best first, equal texts once; never empty
    warnings: tuple[Flag, ...] = ()  # those of all its sentences
    n_segments: int = 1  # usually the number of sentences
    links: tuple[Link, ...] = ()  # which of its words belong to which of the source, if asked for
    matches: tuple[Match, ...] = ()  # of a memory: the pair that was taken, or those that are like the source
    words: tuple[tuple[str, float], ...] = ()  # its words with their log-probabilities in nats, if asked for
    pieces: tuple[Piece, ...] = ()  # its words and tags apart, if asked for; of a unit of a document

    @property
    def text(self) -> str:
        """The best translation."""
        return self.n_best[0].text

    @property
    def score(self) -> float:
        """Score of the best translation."""
        return self.n_best[0].score

    @property
    def is_truncated(self) -> bool:
        """Whether the source was cut: its end is not translated."""
        return "source-cut" in self.warnings


def in_order(flags: Iterable[Flag]) -> tuple[Flag, ...]:
    """Return flags once each, in the order of ``FLAGS``."""
    present = set(flags)
    return tuple(flag for flag in FLAGS if flag in present) if present else ()


def distinct_texts(candidates: Iterable[ScoredText]) -> tuple[ScoredText, ...]:
    """Return the candidates without those whose text an earlier one has: different tokens may give the same text.

    >>> [each.score for each in distinct_texts([ScoredText("a", -1.0), ScoredText("b", -2.0), ScoredText("a", -3.0)])]
    [-1.0, -2.0]
    """
    first_with: dict[str, ScoredText] = {}
    for each in candidates:
        first_with.setdefault(each.text, each)
    return tuple(first_with.values())


def best_combinations(n_best_of: Sequence[Sequence[ScoredText]], n_best: int) -> list[tuple[ScoredText, ...]]:
    """Return the ``n_best`` combinations of one candidate per segment with the greatest sums of scores, best first.

    Pruning after each segment is exact: the best combinations extend the best ones of the earlier segments.
    """
    if len(n_best_of) == 1:
        return [(each,) for each in n_best_of[0][:n_best]]
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
        combinations.append(tuple(combination[::-1]))
    return combinations
