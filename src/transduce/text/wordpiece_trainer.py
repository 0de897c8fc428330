"""WordPiece trainer: merges the pairs of pieces that increase the likelihood of the text most. Section 5.1.

Under a unigram model, merging ``a`` and ``b`` multiplies the likelihood of an occurrence by P(ab) / (P(a) P(b)). Each
step merges the pair with the highest score.

The score alone favours rare pairs: two tokens seen twice, always together, beat all frequent pairs, and the vocabulary
fills with names and numbers. So a pair must also reach a minimum count: half of the average count of a piece (the
tokens of the corpus divided by the vocabulary size). When no pair reaches the minimum, it is halved, down to 2. A fixed
minimum can be given instead; with 1, the score alone decides. (Multi30k, 8,000 pieces: a word takes 5.0 pieces by the
score alone, 1.30 with the minimum, 1.27 with BPE.)

A merge lowers the counts of ``a`` and ``b``, which raises the score of *every* pair with one of them, so scores in a
heap would be stale. They are in an array: a step recomputes the scores of the merged tokens and takes the maximum.

Shapes: P capacity for pairs, R rows of some pairs, X capacity for tokens.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.text.tokenizer_pipelines import CONTINUATION

__all__ = ["learn_pieces", "split_characters"]

MIN_PAIR_COUNT = 2  # a pair seen once does not generalise

Pair = tuple[int, int]


def learn_pieces(
    word_counts: Mapping[str, int], *, alphabet: Sequence[str], n_pieces: int, min_pair_count: int | None = None
) -> list[str]:
    """Return ``alphabet``, then the merged pieces in order of merging: ``n_pieces`` together. Section 5.1.

    ``min_pair_count``: a fixed minimum for the count of a pair. There are fewer pieces if no pair reaches it any more
    (by default, if no pair occurs twice). Ties in score (a float64) go to the more frequent pair, then to
    the one with the lower ids, left before right. The order of the words does not matter. Raises KeyError if a word
    has a character outside the alphabet.

    >>> alphabet = ["h", "u", "…g", "…n", "…s", "…u"]
    >>> learn_pieces({"hug": 10, "hugs": 5, "un": 12}, alphabet=alphabet, n_pieces=9)[6:]
    ['un', 'hu', 'hug']
    """
    pieces = list(alphabet)
    ids = {piece: id for id, piece in enumerate(pieces)}
    words = [[ids[character] for character in split_characters(word)] for word in word_counts]
    corpus = _Corpus(words, list(word_counts.values()))
    token_counts, pair_counts = corpus.counts()
    if min_pair_count is None:
        half_of_average = token_counts.total() // (2 * n_pieces)
        scores = _Scores(min_count=max(half_of_average, MIN_PAIR_COUNT), lowest_min_count=MIN_PAIR_COUNT)
    else:
        scores = _Scores(min_count=min_pair_count, lowest_min_count=min_pair_count)
    scores.update(token_counts, pair_counts)
    while len(pieces) < n_pieces and (best := scores.best()) is not None:
        left, right = best
        merged = pieces[left] + pieces[right].removeprefix(CONTINUATION)
        if merged not in ids:  # it may exist, merged from another pair
            ids[merged] = len(pieces)
            pieces.append(merged)
        scores.update(*corpus.merge(best, ids[merged]))
    return pieces


def split_characters(word: str) -> list[str]:
    """Return the characters of ``word``, all but the first with the continuation prefix.

    >>> split_characters("the")
    ['t', '…h', '…e']
    """
    return [*word[:1], *(CONTINUATION + character for character in word[1:])]


class _Corpus:
    """Distinct words as token ids, their counts, and an index from each pair to the words that have or had it."""

    def __init__(self, words: list[list[int]], counts: list[int]) -> None:
        self._words = words
        self._counts = counts
        self._words_of_pair: defaultdict[Pair, set[int]] = defaultdict(set)
        for n, word in enumerate(words):
            for pair in pairwise(word):
                self._words_of_pair[pair].add(n)

    def counts(self) -> tuple[Counter[int], Counter[Pair]]:
        """Count the tokens and the adjacent pairs of the corpus."""
        tokens, pairs = Counter[int](), Counter[Pair]()
        for word, count in zip(self._words, self._counts, strict=True):
            for token in word:
                tokens[token] += count
            for pair in pairwise(word):
                pairs[pair] += count
        return tokens, pairs

    def merge(self, pair: Pair, merged: int) -> tuple[Counter[int], Counter[Pair]]:
        """Replace ``pair`` by ``merged``, left to right; return the changes of token and pair counts."""
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
    """Scores of all pairs, count(ab) / (count(a) count(b)): P(ab) / (P(a) P(b)) up to a constant factor."""

    def __init__(self, *, min_count: int, lowest_min_count: int) -> None:
        self._min_count, self._lowest_min_count = min_count, lowest_min_count
        self._rows: dict[Pair, int] = {}
        self._rows_of_token: defaultdict[int, list[int]] = defaultdict(list)
        self._pairs_P2 = np.zeros((1024, 2), dtype=np.int64)
        self._pair_counts_P = np.zeros(1024, dtype=np.int64)
        self._scores_P = np.zeros(1024)
        self._token_counts_X = np.zeros(1024, dtype=np.int64)

    def update(self, token_changes: Mapping[int, int], pair_changes: Mapping[Pair, int]) -> None:
        """Add to the counts. A pair whose count changes must have a token whose count changes."""
        for token, change in token_changes.items():
            self._token_counts_X = _reserve(self._token_counts_X, token)
            self._token_counts_X[token] += change
        for pair, change in pair_changes.items():
            if change:
                row = self._row(pair)  # before indexing: it may reallocate the array
                self._pair_counts_P[row] += change
        for token in token_changes:
            self._score(np.array(self._rows_of_token[token], dtype=np.int64))

    def best(self) -> Pair | None:
        """Return the pair to merge, or None if no pair is frequent enough."""
        scores_P = self._scores_P[: len(self._rows)]
        while not (max_score := scores_P.max(initial=0.0)) and self._min_count > self._lowest_min_count:
            self._min_count = max(self._min_count // 2, self._lowest_min_count)
            self._score(np.arange(len(self._rows)))
        if not max_score:
            return None
        rows = np.flatnonzero(scores_P == max_score)
        counts = self._pair_counts_P[rows]
        left, right = min(self._pairs_P2[rows[counts == counts.max()]].tolist())
        return left, right

    def _row(self, pair: Pair) -> int:
        row = self._rows.get(pair)
        if row is None:
            row = self._rows[pair] = len(self._rows)
            self._pairs_P2 = _reserve(self._pairs_P2, row)
            self._pair_counts_P = _reserve(self._pair_counts_P, row)
            self._scores_P = _reserve(self._scores_P, row)
            self._pairs_P2[row] = pair
            for token in set(pair):
                self._rows_of_token[token].append(row)
        return row

    def _score(self, rows_R: NDArray[np.int64]) -> None:
        counts = self._pair_counts_P[rows_R]
        left_counts, right_counts = self._token_counts_X[self._pairs_P2[rows_R]].T
        is_frequent = counts >= self._min_count
        expected = np.where(is_frequent, left_counts * right_counts, 1)  # 1: the count of a token can drop to 0
        self._scores_P[rows_R] = np.where(is_frequent, counts / expected, 0.0)


def _reserve(array: NDArray[Any], row: int) -> NDArray[Any]:
    """Return ``array`` if it has ``row``, else a copy of twice the length, padded with zeros."""
    return array if row < len(array) else np.concatenate([array, np.zeros_like(array)])
