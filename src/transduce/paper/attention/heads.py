"""Numbers of attention heads over many sentences, and the search for heads that follow something.

A head *answers* a question, "which word belongs to this one?", if of all other words it gives the right one its
greatest weight; the end symbol, on which many heads rest, is left out. What a search over many heads finds is measured
on sentences that it has not seen, beside what one fixed place, or one fixed distance, would answer.
"""
# L layers, H heads, W words of a sentence with the end symbol, N words without it

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from transduce.paper.attention.word_attention import WordAttention

__all__ = [
    "FAR",
    "Exam",
    "Finding",
    "HeadNumbers",
    "Question",
    "Rule",
    "everything_alike",
    "find_head",
    "greatest_other",
    "measure_heads",
    "steadiest_offsets",
    "wilson",
]

FAR = 3  # words further apart than this are far from each other
WIDEST_OFFSET = 12

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class HeadNumbers:
    """Means over all words that look, the end symbol not among them; each (L, H)."""

    entropy_nats: Floats  # of a row
    distance: Floats  # in words, of the attention that goes to words
    far_mass: Floats  # to words that are far away
    end_mass: Floats  # to the end symbol
    own_mass: Floats  # to the word itself
    previous_mass: Floats
    next_mass: Floats


def measure_heads(samples: Sequence[WordAttention], *, far: int = FAR) -> HeadNumbers:
    """Every head's numbers over all words of all sentences.

    >>> weights = np.array([[[[0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]]], dtype=np.float32)
    >>> numbers = measure_heads([WordAttention(("low", "slow", "</s>"), weights)])
    >>> float(numbers.next_mass[0, 0]), float(numbers.distance[0, 0]), round(float(numbers.entropy_nats[0, 0]), 3)
    (0.5, 0.75, 0.347)
    """
    n_words = sum(sample.n_words for sample in samples)

    def mean(of_sample: Callable[[Floats], Floats]) -> Floats:
        """Of what each word that looks contributes: (L, H, N, W) to (L, H, N)."""
        total = sum(of_sample(sample.weights[:, :, :-1].astype(np.float64)).sum(axis=-1) for sample in samples)
        return np.asarray(total / n_words)

    end_mass = mean(lambda weights: weights[..., -1])
    return HeadNumbers(
        entropy_nats=mean(_entropy),
        distance=mean(lambda weights: (weights[..., :-1] * _distances(weights)).sum(axis=-1)) / (1 - end_mass),
        far_mass=mean(lambda weights: (weights[..., :-1] * (_distances(weights) > far)).sum(axis=-1)),
        end_mass=end_mass,
        own_mass=mean(lambda weights: _diagonal(weights, 0)),
        previous_mass=mean(lambda weights: _diagonal(weights, -1)),
        next_mass=mean(lambda weights: _diagonal(weights[..., :-1], 1)),
    )


def _entropy(weights: Floats) -> Floats:
    entropy: Floats = -(weights * np.log(np.maximum(weights, 1e-30))).sum(axis=-1)
    return entropy


def _distances(weights: Floats) -> Ints:
    """How far apart two words are, (N, N)."""
    places = np.arange(weights.shape[-2])
    distances: Ints = np.abs(places[:, None] - places)
    return distances


def _diagonal(weights: Floats, offset: int) -> Floats:
    """What each word gives to the one at an offset, where there is one."""
    return np.diagonal(weights, offset, axis1=-2, axis2=-1)


def everything_alike(samples: Sequence[WordAttention]) -> list[WordAttention]:
    """The same sentences under one head that looks at everything alike: what the numbers of no head are."""
    return [
        WordAttention(sample.words, np.full((1, 1, n_words, n_words), 1 / n_words, dtype=np.float32))
        for sample in samples
        for n_words in [len(sample.words)]
    ]


def greatest_other(sample: WordAttention) -> Ints:
    """The other word at which each word looks most, (L, H, N); -1 in a sentence of one word."""
    n_words = sample.n_words
    if n_words < 2:
        return np.full((*sample.weights.shape[:2], n_words), -1)
    others = np.where(np.eye(n_words, dtype=bool), -1.0, sample.weights[:, :, :-1, :-1])
    chosen: Ints = others.argmax(axis=-1)
    return chosen


def steadiest_offsets(chosen: Sequence[Ints]) -> tuple[Ints, Floats]:
    """For each head the distance at which its ``greatest_other`` stands most often, and how often; each (L, H).

    ``chosen`` is that of each sentence. All words count, also those that have no neighbour at this distance.
    """
    offsets = [offset for offset in range(-WIDEST_OFFSET, WIDEST_OFFSET + 1) if offset]
    relative = np.concatenate([each - np.arange(each.shape[-1]) for each in chosen], axis=-1)
    shares = np.stack([(relative == offset).mean(axis=-1) for offset in offsets])
    return np.array(offsets)[shares.argmax(axis=0)], shares.max(axis=0)


@dataclass(frozen=True, slots=True)
class Question:
    """Which word belongs to ``word`` of a sentence? Any of ``answers`` is right."""

    sentence: int
    word: int
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Exam:
    """Questions, and what every head answers in each sentence: its ``greatest_other``."""

    chosen: Sequence[Ints]
    questions: Sequence[Question]

    def shares(self) -> Floats:
        """How many of the questions each head answers, (L, H)."""
        right = [
            np.isin(self.chosen[question.sentence][:, :, question.word], question.answers)
            for question in self.questions
        ]
        shares: Floats = np.mean(right, axis=0)
        return shares

    def share_of(self, rule: Rule) -> float:
        """How many a rule answers."""
        answers = [
            rule.answer(question.word, self.chosen[question.sentence].shape[-1]) in question.answers
            for question in self.questions
        ]
        return sum(answers) / len(answers)


@dataclass(frozen=True, slots=True)
class Rule:
    """An answer that looks at no word: always so far away, or always at one place of the sentence."""

    kind: Literal["offset", "place"]
    number: int  # a place below 0 is counted from the end, -1 is the last word

    def answer(self, word: int, n_words: int) -> int:
        """The place that the rule names, perhaps outside of the sentence."""
        if self.kind == "offset":
            return word + self.number
        return self.number % n_words if -n_words <= self.number < n_words else -1

    def __str__(self) -> str:
        if self.kind == "place":
            return f"word {self.number + 1}" if self.number >= 0 else f"word {-self.number} from the end"
        side, distance = ("after" if self.number > 0 else "before"), abs(self.number)
        return f"next word {side}" if distance == 1 else f"{distance} words {side}"


RULES = (
    *(Rule("offset", offset) for offset in range(-WIDEST_OFFSET, WIDEST_OFFSET + 1) if offset),
    *(Rule("place", place) for place in (*range(12), -1, -2, -3, -4)),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The head that answers most, chosen in one exam and measured in another, beside the best rule."""

    layer: int  # from 0
    head: int  # from 0
    n_questions: int  # that it was measured on
    share: float  # answered
    low: float  # the 95 % interval of the share, by Wilson
    high: float
    rule: Rule
    rule_share: float

    @property
    def beats_rule(self) -> bool:
        """Whether all of the interval is above what the rule answers."""
        return self.low > self.rule_share


def find_head(choosing: Exam, measuring: Exam) -> Finding:
    """Choose a head and a rule where they answer most of one exam, and measure both in the other."""
    shares = choosing.shares()
    layer, head = (int(place) for place in np.unravel_index(shares.argmax(), shares.shape))
    rule = max(RULES, key=choosing.share_of)
    share, n_questions = float(measuring.shares()[layer, head]), len(measuring.questions)
    low, high = wilson(share, n_questions)
    return Finding(layer, head, n_questions, share, low, high, rule, measuring.share_of(rule))


def wilson(share: float, n: int, *, z: float = 1.96) -> tuple[float, float]:
    """The interval of a share of ``n``, 95 % as it stands (Wilson, 1927).

    >>> [round(bound, 3) for bound in wilson(0.5, 100)]
    [0.404, 0.596]
    """
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)
