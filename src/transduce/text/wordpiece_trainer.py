"""Which neighbours belong together: pieces of words, merged where that makes text likelier. Word-piece, section 5.1.

With each piece drawn by its frequency, ``ab`` as one piece is P(ab) / (P(a) P(b)) times as likely as ``a`` and ``b``
by themselves. Each step merges the pair with the greatest quotient.

The quotient alone prefers what is rare: two symbols that are seen twice, always together, beat all common pairs, and
the vocabulary fills with names and numbers. So a pair must be common as well: half as common as a piece is on average,
if its symbols are shared among all pieces. Where no such pair is left, half of that will do, and so on down to 2.
In a small corpus it is 2 from the start.

A merge lowers the counts of ``a`` and ``b``, so it raises the quotient of *every* pair with one of them: scores in a
heap would be out of date. They stand in an array. A step rewrites those of the merged symbols and takes the maximum.
"""

# P pairs seen so far, and room for more; S symbols; R rows of some pairs

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.text.tokenizer_pipelines import CONTINUATION

__all__ = ["learn_pieces", "split_characters"]

MIN_PAIR_COUNT = 2  # a pair seen once says nothing about other text

Pair = tuple[int, int]


def learn_pieces(word_counts: Mapping[str, int], *, alphabet: Sequence[str], n_pieces: int) -> list[str]:
    """``alphabet``, then the pieces that are merged, in their order, until there are ``n_pieces``. Section 5.1.

    There are fewer pieces where pairs that occur twice run out. Of pairs with the same score (a float64) the
    commoner is merged, then the one whose symbols have been known longest, the left symbol first. The order of the
    words does not matter. Raises KeyError if a word has a symbol that the alphabet lacks.

    >>> alphabet = ["h", "u", "…g", "…n", "…s", "…u"]
    >>> learn_pieces({"hug": 10, "hugs": 5, "un": 12}, alphabet=alphabet, n_pieces=9)[6:]
    ['un', 'hu', 'hug']
    """
    pieces = list(alphabet)
    ids = {piece: id for id, piece in enumerate(pieces)}
    corpus = _Corpus(
        [[ids[token] for token in split_characters(word)] for word in word_counts], list(word_counts.values())
    )
    token_counts, pair_counts = corpus.counts()
    scores = _Scores(floor=max(token_counts.total() // (2 * n_pieces), MIN_PAIR_COUNT))
    scores.update(token_counts, pair_counts)
    while len(pieces) < n_pieces and (best := scores.best()) is not None:
        left, right = best
        merged = pieces[left] + pieces[right].removeprefix(CONTINUATION)
        if merged not in ids:  # else it is known from other parts
            ids[merged] = len(pieces)
            pieces.append(merged)
        scores.update(*corpus.merge(best, ids[merged]))
    return pieces


def split_characters(word: str) -> list[str]:
    """The characters of ``word``, with a mark on all but the first.

    >>> split_characters("the")
    ['t', '…h', '…e']
    """
    return [*word[:1], *(CONTINUATION + token for token in word[1:])]


class _Corpus:
    """Distinct words as rows of symbols, how often each occurs, and which words have had a pair."""

    def __init__(self, words: list[list[int]], counts: list[int]) -> None:
        self._words = words
        self._counts = counts
        self._words_of_pair: defaultdict[Pair, set[int]] = defaultdict(set)
        for n, word in enumerate(words):
            for pair in pairwise(word):
                self._words_of_pair[pair].add(n)

    def counts(self) -> tuple[Counter[int], Counter[Pair]]:
        """How often each symbol occurs in the corpus, and how often each pair of them stands side by side."""
        tokens, pairs = Counter[int](), Counter[Pair]()
        for word, count in zip(self._words, self._counts, strict=True):
            for token in word:
                tokens[token] += count
            for pair in pairwise(word):
                pairs[pair] += count
        return tokens, pairs

    def merge(self, pair: Pair, merged: int) -> tuple[Counter[int], Counter[Pair]]:
        """Put ``merged`` where ``pair`` stands, from left to right; the changes in the counts of symbols and pairs."""
        token_changes, pair_changes = Counter[int](), Counter[Pair]()
        for n in self._words_of_pair.pop(pair):
            old, count = self._words[n], self._counts[n]
            new = self._words[n] = _merged(old, pair, merged)
            n_merges = len(old) - len(new)
            for token in pair:
                token_changes[token] -= count * n_merges
            token_changes[merged] += count * n_merges
            for neighbours in pairwise(old):
                pair_changes[neighbours] -= count
            for neighbours in pairwise(new):
                pair_changes[neighbours] += count
                if merged in neighbours:
                    self._words_of_pair[neighbours].add(n)
        return token_changes, pair_changes


def _merged(word: list[int], pair: Pair, merged: int) -> list[int]:
    left, right = pair
    result: list[int] = []
    position, last = 0, len(word) - 1
    while position <= last:
        if position < last and word[position] == left and word[position + 1] == right:
            result.append(merged)
            position += 2
        else:
            result.append(word[position])
            position += 1
    return result


class _Scores:
    """count(ab) / (count(a) count(b)) of every pair: P(ab) / (P(a) P(b)) but for the size of the corpus."""

    def __init__(self, *, floor: int) -> None:
        self._floor = floor
        self._rows: dict[Pair, int] = {}
        self._rows_of_token: defaultdict[int, list[int]] = defaultdict(list)
        self._pairs_P2 = np.zeros((1024, 2), dtype=np.int64)
        self._pair_counts_P = np.zeros(1024, dtype=np.int64)
        self._scores_P = np.zeros(1024)
        self._token_counts_S = np.zeros(1024, dtype=np.int64)

    def update(self, token_changes: Mapping[int, int], pair_changes: Mapping[Pair, int]) -> None:
        """Add to the counts; every pair whose count changes has a symbol whose count changes."""
        for token, change in token_changes.items():
            self._token_counts_S = _with_room(self._token_counts_S, token)
            self._token_counts_S[token] += change
        for pair, change in pair_changes.items():
            if change:
                row = self._row(pair)  # first: it may put a longer array in place
                self._pair_counts_P[row] += change
        for token in token_changes:
            self._score(np.array(self._rows_of_token[token], dtype=np.int64))

    def best(self) -> Pair | None:
        """The pair to merge, or None if no pair is common enough."""
        scores_P = self._scores_P[: len(self._rows)]
        while not (greatest := scores_P.max(initial=0.0)) and self._floor > MIN_PAIR_COUNT:
            self._floor = max(self._floor // 2, MIN_PAIR_COUNT)
            self._score(np.arange(len(self._rows)))
        if not greatest:
            return None
        rows = np.flatnonzero(scores_P == greatest)
        counts = self._pair_counts_P[rows]
        left, right = min(self._pairs_P2[rows[counts == counts.max()]].tolist())
        return left, right

    def _row(self, pair: Pair) -> int:
        row = self._rows.get(pair)
        if row is None:
            row = self._rows[pair] = len(self._rows)
            self._pairs_P2 = _with_room(self._pairs_P2, row)
            self._pair_counts_P = _with_room(self._pair_counts_P, row)
            self._scores_P = _with_room(self._scores_P, row)
            self._pairs_P2[row] = pair
            for token in set(pair):
                self._rows_of_token[token].append(row)
        return row

    def _score(self, rows_R: NDArray[np.int64]) -> None:
        counts = self._pair_counts_P[rows_R]
        left_counts, right_counts = self._token_counts_S[self._pairs_P2[rows_R]].T
        is_common = counts >= self._floor
        expected = np.where(is_common, left_counts * right_counts, 1)  # a symbol that is used up counts 0
        self._scores_P[rows_R] = np.where(is_common, counts / expected, 0.0)


def _with_room(array: NDArray[Any], row: int) -> NDArray[Any]:
    """``array`` with ``row`` in it: as it is, or twice as long with zeros."""
    return array if row < len(array) else np.concatenate([array, np.zeros_like(array)])
