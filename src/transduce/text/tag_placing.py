"""Placing of tags in a translation, by how much each of its words belongs to each word of the source.

A pair of tags surrounds the run of target words that belongs to the words between them in the source; a single tag, or
an element that is not translated, goes where the fewest words change sides. The result is nested as the source is.

Where no target word belongs to the words of a pair more than it would by chance, its place is guessed: around all
words, or beside other pairs by its position in the source.

Shapes: X target words, Y source words.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import TYPE_CHECKING

from transduce.imports import numpy as np
from transduce.text.punctuation import FOLLOWING
from transduce.text.trusted_weights import Span, is_mark, trusted_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Node", "Placing", "Span"]


@dataclass(slots=True, eq=False)
class Node:
    """An inline element, or a single tag, at characters of the unit's text."""

    opening: str  # as in the source
    closing: str
    start: int
    end: int
    has_space_before: bool  # in the source, beside the tag
    has_space_after: bool
    is_note: bool = False  # it follows the word before it, like the mark of a note
    children: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Placing:
    """The places of tags in one translation."""

    source: str
    source_words: Sequence[Span]
    target: str
    target_words: Sequence[Span]
    sums_XY: NDArray[np.float32]  # of the weights before each source word
    starts: Sequence[int]  # of the source words
    ends: Sequence[int]
    n_words_before: Sequence[int]  # of each source word, and of the end: words, not marks
    guessed: list[Node] = field(default_factory=list)  # pairs whose words were found nowhere, once rendered

    @classmethod
    def of(
        cls,
        source: str,
        source_words: Sequence[Span],
        target: str,
        target_words: Sequence[Span],
        weights_XY: NDArray[np.float32],
    ) -> Placing:
        """Prepare the places of tags, given how much each target word belongs to each source word."""
        weights_XY = trusted_weights(weights_XY, source, source_words, target, target_words)
        zeros_X1 = np.zeros((len(target_words), 1), np.float32)
        sums_XY = np.concatenate((zeros_X1, np.cumsum(weights_XY, axis=1)), axis=1)
        starts, ends = [start for start, _ in source_words], [end for _, end in source_words]
        is_word = [not is_mark(source[start:end]) for start, end in source_words]
        n_words_before = [*accumulate(is_word, initial=0)]
        return cls(source, source_words, target, target_words, sums_XY, starts, ends, n_words_before)

    def render(
        self, nodes: Sequence[Node], low: int, high: int, escape: Callable[[str], str], *, is_whole: bool = False
    ) -> str:
        """Return the target words ``low`` to ``high`` with the tags; ``is_whole``: with what surrounds the words."""
        spans, is_inside = self._spans(nodes, low, high)
        items: list[tuple[int, int, Node, Span | None]] = []
        for node in nodes:
            span = spans.get(id(node))
            place = self._place(node, low, high, is_inside) if span is None else span[0]
            items.append((place, span is not None, node, span))
        items.sort(key=lambda item: item[:2])  # stable: in the order of the source
        begin, end = (0, len(self.target)) if is_whole else self._characters(low, high)
        pieces, cursor, index = list[str](), begin, 0
        while index < len(items):
            place, _, node, span = items[index]
            if span is not None:
                start, stop = self._characters(*span)
                pieces += [escape(self.target[cursor:start]), node.opening]
                pieces += [self.render(node.children, *span, escape), node.closing]
                cursor = stop
                index += 1
                continue
            group = [node]
            while index + len(group) < len(items) and items[index + len(group)][:2] == (place, False):
                group.append(items[index + len(group)][2])
            gap_start = self.target_words[place - 1][1] if place > low else begin
            gap_end = self.target_words[place][0] if place < high else end
            gap_start, gap_end = max(gap_start, cursor), max(gap_end, cursor)
            pieces.append(escape(self.target[cursor:gap_start]))
            precedes_sign = place < high and self.target[gap_end] in FOLLOWING
            gap = self.target[gap_start:gap_end]
            pieces.append(self._gap(group, gap, escape, place > low, place < high, precedes_sign=precedes_sign))
            cursor = gap_end
            index += len(group)
        return "".join([*pieces, escape(self.target[cursor:end])])

    def _gap(
        self,
        nodes: Sequence[Node],
        gap: str,
        escape: Callable[[str], str],
        follows_word: bool,
        precedes_word: bool,
        *,
        precedes_sign: bool,
    ) -> str:
        """Return single tags between two words, with space beside them as in the source; none before a full stop."""
        text, has_space = "", False
        other = gap.strip()  # characters that are no words
        for node in nodes:
            if node.has_space_before and (follows_word or text) and not text.endswith(" "):
                text += " "
                has_space = True
            text += node.opening + self._empty(node.children) + node.closing
        is_open = nodes[-1].has_space_after and precedes_word and not precedes_sign
        if is_open or (gap[-1:].isspace() and precedes_word and not has_space):
            text += " "
        return text + escape(other)

    def _empty(self, nodes: Sequence[Node]) -> str:
        return "".join(node.opening + self._empty(node.children) + node.closing for node in nodes)

    def _characters(self, low: int, high: int) -> Span:
        """Return the (start, end) of the characters of target words."""
        return (self.target_words[low][0], self.target_words[high - 1][1]) if low < high else (0, 0)

    def _spans(self, nodes: Sequence[Node], low: int, high: int) -> tuple[dict[int, Span], NDArray[np.bool_]]:
        """Return the target words of each pair of tags, disjoint, and which boundaries of words are inside one.

        A pair without words, or for which no target word is left, has none.
        """
        found, n_pairs = [], sum(node.start < node.end for node in nodes)
        for node in nodes:
            first, last = self._range(node)
            if node.start < node.end and first < last:
                values_X = self.sums_XY[low:high, last] - self.sums_XY[low:high, first] - 0.5
                if last - first == len(self.source_words):
                    values_X = np.ones_like(values_X)
                elif words := self._without_letters(first, last):
                    values_X = np.where(self._may_be_X(words, values_X, low), values_X, TAKEN)
                elif values_X.max(initial=-1) + 0.5 <= self._chance(first, last) < 1:
                    self.guessed.append(node)
                    values_X = self._by_position_X(first, last, low, high) if n_pairs > 1 else np.ones_like(values_X)
                found.append((float(values_X.max(initial=-1)), node, values_X))
        found.sort(key=lambda each: -each[0])
        is_free_X, is_inside = np.ones(high - low, bool), np.zeros(high - low + 1, bool)
        spans = dict[int, Span]()
        for _, node, values_X in found:
            span = _best_run(np.where(is_free_X, values_X, TAKEN))
            if span is not None:
                is_free_X[span[0] : span[1]] = False
                is_inside[span[0] + 1 : span[1]] = True
                spans[id(node)] = (low + span[0], low + span[1])
            elif node not in self.guessed and not self._without_letters(*self._range(node)):
                self.guessed.append(node)
        return spans, is_inside

    def _range(self, node: Node) -> Span:
        """Return the (first, end) of the source words inside a pair."""
        return bisect_right(self.ends, node.start), bisect_left(self.starts, node.end)

    def _chance(self, first: int, last: int) -> float:
        """Return how much a target word would belong to a range of source words if it belonged to all words alike.

        1 or more if all words are in the range, and only marks beside it.
        """
        n_words_before = self.n_words_before
        return (n_words_before[last] - n_words_before[first]) / max(1, n_words_before[-1]) * (1 + TOLERANCE)

    def _by_position_X(self, first: int, last: int, low: int, high: int) -> NDArray[np.float64]:
        """Return the values of target words if the words of both languages came in the same order."""
        place_X = (np.arange(low, high) + 0.5) * len(self.source_words) / max(1, len(self.target_words))
        return np.where((first <= place_X) & (place_X < last), 0.5, -0.5)

    def _without_letters(self, first: int, last: int) -> set[str]:
        """Return the source words of a range if none has a letter."""
        words = {self.source[start:end] for start, end in self.source_words[first:last]}
        return set() if any(map(str.isalpha, chain.from_iterable(words))) else words

    def _may_be_X(self, words: Collection[str], values_X: NDArray[np.float32], low: int) -> list[bool]:
        """Return which target words from ``low`` may be the translation of words without letters.

        Equal ones; of a number other numbers, which languages write differently, and words that clearly belong to it.
        """
        targets = [self.target[start:end] for start, end in self.target_words[low : low + len(values_X)]]
        if not any(map(_has_digit, words)):
            return [target in words for target in targets]
        return [_has_digit(target) or value > 0 for target, value in zip(targets, values_X, strict=True)]

    def _place(self, node: Node, low: int, high: int, is_inside: NDArray[np.bool_]) -> int:
        """Return the number of the target word before which a single tag stands: the fewest words change sides.

        A note stands behind its word if that is clear.
        """
        n_before = bisect_right(self.ends, node.start)
        if high <= low or (n_before == 0 and low == 0):
            return low
        if n_before == len(self.source_words) and high == len(self.target_words):
            return high
        if node.is_note and n_before > 0:
            of_word_X = self.sums_XY[low:high, n_before] - self.sums_XY[low:high, n_before - 1]
            place = int(of_word_X.argmax()) + 1
            if of_word_X[place - 1] > 0.5 and not is_inside[place]:
                return low + place
        early_X = self.sums_XY[low:high, n_before]  # how much each word belongs before the tag
        wrong = np.zeros(high - low + 1)
        wrong[1:] += np.cumsum(1 - early_X)
        wrong[:-1] += np.cumsum(early_X[::-1])[::-1]
        return low + int(np.where(is_inside, np.inf, wrong).argmin())


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


TOLERANCE = 1e-3  # of weights that are alike
TAKEN = -1e6  # the value of a word that belongs to another pair


def _best_run(values: NDArray[np.floating]) -> Span | None:
    """Return the (start, end) of the run with the greatest sum, at least one value; None if all are taken.

    >>> _best_run(np.array([-0.5, 0.4, -0.1, 0.3, -0.5])), _best_run(np.array([TAKEN]))
    ((1, 4), None)
    """
    if not len(values):
        return None
    sums = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    lowest = np.minimum.accumulate(sums[:-1])
    end = int((sums[1:] - lowest).argmax()) + 1
    if sums[end] - lowest[end - 1] <= TAKEN / 2:
        return None
    return int(np.flatnonzero(sums[:end] == lowest[end - 1])[-1]), end
