"""Which words translate each other, for the hints of ``text/term_hints.py``: IBM Model 1 in both directions.

Shapes: B pairs of a chunk, I distinct combinations of the text.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from transduce.data.columns import Ragged
from transduce.data.lexicon import NULL_ID, Lexicon, train_lexicon
from transduce.text import normalise
from transduce.text.term_hints import WordTable, is_word, table_words
from transduce.text.word_spans import word_spans

__all__ = ["learn_word_table"]

MAX_PAIRS = 30_000  # that are read
MAX_WORDS = 30  # of a text; the time of longer ones grows with the square
N_ITERATIONS = 3
COMMON = 0.2  # of the pairs: more frequent words are no terms
MIN_SCORE = 0.03  # of two words, the geometric mean of the probabilities in both directions


def learn_word_table(pairs: Iterable[tuple[str, str]]) -> WordTable:
    """Return the words of pairs that translate each other, from the first ``MAX_PAIRS``.

    >>> pairs = [("a dog", "ein Hund"), ("a cat", "eine Katze"), ("the dog", "der Hund"), ("the cat", "die Katze")] * 9
    >>> scores = learn_word_table(pairs).scores["dog"]
    >>> max(scores, key=scores.__getitem__)
    'hund'
    """
    src, tgt, counts = _Side(), _Side(), Counter[str]()
    capitals = defaultdict[str, Counter[str]](Counter)
    first = list(islice(pairs, MAX_PAIRS))
    for source, target in (map(normalise, pair) for pair in first):
        words, of_target = table_words(source), table_words(target)
        counts.update(set(filter(is_word, words)))
        if words and of_target and max(len(words), len(of_target)) <= MAX_WORDS:
            src.add(words)
            tgt.add(of_target)
        for start, end in word_spans(target)[1:]:  # not the first, which may be a capital for its place
            capitals[target[start:end].casefold()][target[start:end]] += 1
    rows = np.arange(len(src.rows))
    there, back = (
        _probabilities(train_lexicon(*sides, rows, n_iterations=N_ITERATIONS)) for sides in ((src, tgt), (tgt, src))
    )
    scores = defaultdict[str, dict[str, float]](dict)
    of_source, of_target = list(src.ids), list(tgt.ids)
    for (s, t), p in there.items():
        score = sqrt(p * back.get((t, s), 0.0))
        if score >= MIN_SCORE:
            scores[of_source[s - 1]][of_target[t - 1]] = round(score, 3)
    known = {word for of_word in scores.values() for word in of_word} & capitals.keys()
    common = [word for word, n in counts.items() if n > COMMON * len(first)]
    return WordTable(dict(scores), {word: capitals[word].most_common(1)[0][0] for word in sorted(known)}, common)


class _Side:
    """The words of one side as ids."""

    def __init__(self) -> None:
        self.ids, self.rows = dict[str, int](), list[list[int]]()

    def add(self, words: Iterable[str]) -> None:
        """Add the words of a text."""
        self.rows.append([self.ids.setdefault(word, NULL_ID + 1 + len(self.ids)) for word in words])

    def gather(self, rows_B: NDArray[np.int64], /) -> Ragged:
        """Return some rows."""
        chosen = [self.rows[row] for row in rows_B.tolist()]
        ids = np.array([id for row in chosen for id in row], np.int64)
        return Ragged(ids, np.array(list(map(len, chosen)), np.int64))


def _probabilities(lexicon: Lexicon) -> dict[tuple[int, int], float]:
    """Return the probabilities that may be enough, without those of the null word."""
    is_kept_I = (lexicon.probabilities_I >= MIN_SCORE**2) & (lexicon.src_ids_I != NULL_ID)
    kept = (lexicon.src_ids_I[is_kept_I], lexicon.tgt_ids_I[is_kept_I], lexicon.probabilities_I[is_kept_I])
    return {(s, t): p for s, t, p in zip(*(each.tolist() for each in kept), strict=True)}
