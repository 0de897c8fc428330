"""Statistics of attention heads over many sentences, and probes: does a head attend to the word it should?

In a probe, a head's answer for a word is the other word with its greatest weight; EOS, on which many heads rest, is
left out. The best of many heads is chosen on one set of sentences and measured on another, beside the best baseline
that knows positions only.

Shapes: L layers, H heads, T query positions (words without EOS), S key positions (words with EOS).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import hypot, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from transduce_paper.attention.word_attention import WordAttention

__all__ = [
    "BASELINES", "DISTANT", "MANY", "HeadNumbers", "HeadResult", "HeadStatistics", "PositionBaseline", "Probe",
    "ProbeItem", "are_many", "best_head", "entropy", "head_names", "head_numbers", "head_result", "head_statistics",
    "most_frequent_offsets", "strongest_other", "uniform_attention", "wilson",
]  # fmt: skip

MANY = "many: a quarter of the heads or more; not many: none; in between, one cannot tell"  # as ``are_many``
DISTANT = 3  # words further apart than this are distant
MAX_OFFSET = 12

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class HeadStatistics:
    """Means over all query words, EOS excluded as a query; each (L, H)."""

    entropy_nats: Floats  # of a row of weights
    distance: Floats  # in words, of the weight on words
    distant_mass: Floats  # weight on words more than DISTANT away
    eos_mass: Floats  # weight on EOS
    self_mass: Floats  # weight on the query word itself
    previous_mass: Floats
    next_mass: Floats


def head_statistics(samples: Sequence[WordAttention], *, distant: int = DISTANT) -> HeadStatistics:
    """Return the statistics of every head over all words of all sentences.

    >>> weights = np.array([[[[0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]]], dtype=np.float32)
    >>> statistics = head_statistics([WordAttention(("low", "slow", "</s>"), weights)])
    >>> [round(float(each[0, 0]), 3) for each in (statistics.next_mass, statistics.distance, statistics.entropy_nats)]
    [0.5, 0.75, 0.347]
    """
    n_words = sum(sample.n_words for sample in samples)

    def mean(of_sample: Callable[[Floats], Floats]) -> Floats:
        """Return the mean over query words of a function from (L, H, T, S) to (L, H, T)."""
        total = sum(of_sample(sample.weights[:, :, :-1].astype(np.float64)).sum(axis=-1) for sample in samples)
        return np.asarray(total / n_words)

    eos_mass = mean(lambda weights: weights[..., -1])
    return HeadStatistics(
        entropy_nats=mean(entropy),
        distance=mean(lambda weights: (weights[..., :-1] * _distances(weights)).sum(axis=-1)) / (1 - eos_mass),
        distant_mass=mean(lambda weights: (weights[..., :-1] * (_distances(weights) > distant)).sum(axis=-1)),
        eos_mass=eos_mass,
        self_mass=mean(lambda weights: _diagonal(weights, 0)),
        previous_mass=mean(lambda weights: _diagonal(weights, -1)),
        next_mass=mean(lambda weights: _diagonal(weights[..., :-1], 1)),
    )


def entropy(weights: Floats) -> Floats:
    """Return the entropy of each row of weights, in nats."""
    nats: Floats = -(weights * np.log(np.maximum(weights, 1e-30))).sum(axis=-1)
    return nats


def _distances(weights: Floats) -> Ints:
    """Return the distances between words, (T, T)."""
    positions = np.arange(weights.shape[-2])
    distances: Ints = np.abs(positions[:, None] - positions)
    return distances


def _diagonal(weights: Floats, offset: int) -> Floats:
    """Return the weights on the word at an offset from the query, for queries that have one."""
    return np.diagonal(weights, offset, axis1=-2, axis2=-1)


def uniform_attention(samples: Sequence[WordAttention]) -> list[WordAttention]:
    """Return the same sentences under one head with uniform weights, as a reference for the statistics."""
    return [
        WordAttention(sample.words, np.full((1, 1, n_words, n_words), 1 / n_words, dtype=np.float32))
        for sample in samples
        for n_words in [len(sample.words)]
    ]


def strongest_other(sample: WordAttention) -> Ints:
    """Return the other word with the greatest weight of each query, (L, H, T); -1 in a sentence of one word."""
    n_words = sample.n_words
    if n_words < 2:
        return np.full((*sample.weights.shape[:2], n_words), -1)
    others = np.where(np.eye(n_words, dtype=bool), -1.0, sample.weights[:, :, :-1, :-1])
    answers: Ints = others.argmax(axis=-1)
    return answers


def most_frequent_offsets(answers: Sequence[Ints]) -> tuple[Ints, Floats]:
    """Return each head's most frequent offset of ``strongest_other``, and its share of all words; each (L, H).

    ``answers`` has one array per sentence. Words without a neighbour at that offset count, too.
    """
    offsets = [offset for offset in range(-MAX_OFFSET, MAX_OFFSET + 1) if offset]
    relative = np.concatenate([each - np.arange(each.shape[-1]) for each in answers], axis=-1)
    shares = np.stack([(relative == offset).mean(axis=-1) for offset in offsets])
    return np.array(offsets)[shares.argmax(axis=0)], shares.max(axis=0)


@dataclass(frozen=True, slots=True)
class HeadNumbers:
    """The statistics of one head over some sentences, or those of uniform attention (no layer, no head)."""

    layer: int | None  # from 0
    head: int | None  # from 0
    n_sentences: int
    entropy_nats: float  # the fields of HeadStatistics
    distance: float
    distant_mass: float
    eos_mass: float
    self_mass: float
    previous_mass: float
    next_mass: float
    offset: int  # most frequent one of the strongest other word
    offset_share: float  # of all words


def head_numbers(samples: Sequence[WordAttention]) -> list[HeadNumbers]:
    """Return the numbers of every head, by layer, and as the last those of uniform attention."""
    uniform = _numbers(uniform_attention(samples))[0]
    return [*_numbers(samples), replace(uniform, layer=None, head=None)]


def _numbers(samples: Sequence[WordAttention]) -> list[HeadNumbers]:
    means = head_statistics(samples)
    offsets, shares = most_frequent_offsets([strongest_other(sample) for sample in samples])
    return [
        HeadNumbers(
            layer,
            head,
            len(samples),
            entropy_nats=float(means.entropy_nats[layer, head]),
            distance=float(means.distance[layer, head]),
            distant_mass=float(means.distant_mass[layer, head]),
            eos_mass=float(means.eos_mass[layer, head]),
            self_mass=float(means.self_mass[layer, head]),
            previous_mass=float(means.previous_mass[layer, head]),
            next_mass=float(means.next_mass[layer, head]),
            offset=int(offsets[layer, head]),
            offset_share=float(shares[layer, head]),
        )
        for layer, head in np.ndindex(*shares.shape)
    ]


@dataclass(frozen=True, slots=True)
class ProbeItem:
    """A query word of a sentence and the words that count as correct answers."""

    sentence: int
    word: int
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """Items of one relation, and the answers of every head in each sentence (``strongest_other``)."""

    answers: Sequence[Ints]
    items: Sequence[ProbeItem]

    def accuracies(self) -> Floats:
        """Return each head's share of correct answers, (L, H)."""
        correct = [np.isin(self.answers[item.sentence][:, :, item.word], item.targets) for item in self.items]
        accuracies: Floats = np.mean(correct, axis=0)
        return accuracies

    def baseline_accuracy(self, baseline: PositionBaseline) -> float:
        """Return a baseline's share of correct answers."""
        correct = [
            baseline.answer(item.word, self.answers[item.sentence].shape[-1]) in item.targets for item in self.items
        ]
        return sum(correct) / len(correct)


@dataclass(frozen=True, slots=True)
class PositionBaseline:
    """A baseline that knows positions only: always the word at one offset, or always the word at one position."""

    kind: Literal["offset", "position"]
    number: int  # negative positions count from the end, -1 is the last word

    def answer(self, word: int, n_words: int) -> int:
        """Return the position of the answer, which may lie outside of the sentence."""
        if self.kind == "offset":
            return word + self.number
        return self.number % n_words if -n_words <= self.number < n_words else -1

    def __str__(self) -> str:
        if self.kind == "position":
            return f"word {self.number + 1}" if self.number >= 0 else f"word {-self.number} from the end"
        side, distance = ("after" if self.number > 0 else "before"), abs(self.number)
        return f"next word {side}" if distance == 1 else f"{distance} words {side}"


BASELINES = (
    *(PositionBaseline("offset", offset) for offset in range(-MAX_OFFSET, MAX_OFFSET + 1) if offset),
    *(PositionBaseline("position", position) for position in (*range(12), -1, -2, -3, -4)),
)


@dataclass(frozen=True, slots=True)
class HeadResult:
    """The most accurate head, chosen on one probe and measured on another, beside the best position baseline."""

    layer: int  # from 0
    head: int  # from 0
    n_items: int  # of the test probe
    accuracy: float
    low: float  # 95 % Wilson interval of the accuracy
    high: float
    baseline: PositionBaseline
    baseline_accuracy: float

    @property
    def index(self) -> tuple[int, int]:
        """Layer and head."""
        return self.layer, self.head

    @property
    def beats_baseline(self) -> bool:
        """Whether the 95 % interval of the difference from the baseline, by Newcombe (1998), is above zero.

        It takes the two as independent; both answer the same items, so it is rather too wide.
        """
        _, high_of_baseline = wilson(self.baseline_accuracy, self.n_items)
        half = hypot(self.accuracy - self.low, high_of_baseline - self.baseline_accuracy)
        return self.accuracy - self.baseline_accuracy > half

    @property
    def falls_short(self) -> bool:
        """Whether that interval is below zero."""
        low_of_baseline, _ = wilson(self.baseline_accuracy, self.n_items)
        half = hypot(self.high - self.accuracy, self.baseline_accuracy - low_of_baseline)
        return self.baseline_accuracy - self.accuracy > half


def best_head(dev: Probe, test: Probe) -> HeadResult:
    """Choose the most accurate head and baseline on the dev probe, and measure both on the test probe."""
    accuracies = dev.accuracies()
    layer, head = (int(index) for index in np.unravel_index(accuracies.argmax(), accuracies.shape))
    return head_result((layer, head), dev, test)


def head_result(index: tuple[int, int], dev: Probe, test: Probe) -> HeadResult:
    """Measure a head, (layer, head) from 0, on the test probe, beside the best baseline of the dev probe."""
    baseline = max(BASELINES, key=dev.baseline_accuracy)
    accuracy, n_items = float(test.accuracies()[index]), len(test.items)
    low, high = wilson(accuracy, n_items)
    return HeadResult(*index, n_items, accuracy, low, high, baseline, test.baseline_accuracy(baseline))


def head_names(heads: Iterable[tuple[int, int]], *, separator: str = "; ") -> str:
    """Name heads, given as layer and head from 0.

    >>> head_names([(0, 2), (5, 0)])
    'layer 1, head 3; layer 6, head 1'
    """
    return separator.join(f"layer {layer + 1}, head {head + 1}" for layer, head in heads)


def are_many(n: int, of: int) -> bool | None:
    """Return whether ``n`` heads of some are "many": yes from a quarter on, no if there are none; None in between.

    >>> are_many(2, 8), are_many(1, 8), are_many(0, 8)
    (True, None, False)
    """
    return n > 0 and (True if n >= of / 4 else None)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return the Wilson (1927) score interval of a share of ``n``, at 95 %.

    >>> [round(bound, 3) for bound in wilson(0.5, 100)]
    [0.404, 0.596]
    """
    z = 1.96
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)
