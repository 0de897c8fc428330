"""Sampling: which rows of a store an epoch reads, by corpus weight, and which of them are reversed.

Shapes: P pairs of one corpus, R rows of the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import floor

import numpy as np
from numpy.typing import NDArray

__all__ = ["epoch_rows", "n_reads", "reversed_rows"]


def n_reads(n_pairs: int, weight: float, n_epochs: int) -> int:
    """Return how many pairs of a corpus the first epochs read; exact, so that 0.1 of ten pairs is one in each epoch.

    >>> n_reads(100, 0.29, 1), n_reads(100, 0.29, 2)
    (29, 58)
    """
    return floor(n_epochs * Fraction(str(weight)) * n_pairs)  # as it is written: as a float, 0.29 is a little less


def epoch_rows(
    n_pairs_of: Sequence[int], weights: Sequence[float], *, n_encodings: int, seed: int, epoch: int
) -> NDArray[np.int64]:
    """Return the rows that an epoch reads, in store order; a pure function, the same on every machine.

    An epoch reads each pair of a corpus of weight 2 twice, and a quarter of the pairs of a corpus of weight 0.25: a
    different quarter in each of four epochs. Each pair has ``n_encodings`` rows (BPE-dropout samples); successive reads
    cycle through them.

    >>> epoch_rows([3, 4], [1.0, 0.5], n_encodings=1, seed=1, epoch=0).tolist()
    [0, 1, 2, 3, 5]
    >>> epoch_rows([3, 4], [1.0, 0.5], n_encodings=1, seed=1, epoch=1).tolist()
    [0, 1, 2, 4, 6]
    """
    rows, n_pairs_before = [], 0
    for corpus, (n_pairs, weight) in enumerate(zip(n_pairs_of, weights, strict=True)):
        begin, end = (n_reads(n_pairs, weight, n_epochs) for n_epochs in (epoch, epoch + 1))
        if end - begin == n_pairs and n_encodings == 1:  # each pair once, in whatever order: a third of the memory
            rows.append(np.arange(n_pairs_before, n_pairs_before + n_pairs))
        else:
            random = np.random.default_rng([seed, corpus])
            order_P, first_encoding_P = random.permutation(n_pairs), random.integers(n_encodings, size=n_pairs)
            reads = np.arange(begin, end)  # counted over the run, which cycles through the shuffled pairs of the corpus
            pairs = order_P[reads % n_pairs]
            encodings = (first_encoding_P[pairs] + reads // n_pairs) % n_encodings
            rows.append(np.sort((n_pairs_before + pairs) * n_encodings + encodings))
        n_pairs_before += n_pairs
    return rows[0] if len(rows) == 1 else np.concatenate(rows)


@lru_cache(maxsize=1)  # called for every batch of an epoch
def reversed_rows(n_rows: int, *, seed: int, epoch: int) -> NDArray[np.bool_]:
    """Mask of the rows reversed (target to source) in an epoch of bidirectional training, (R,).

    About half of the rows are reversed in even epochs, the others in odd ones. In Ding et al. (2021), "Improving Neural
    Machine Translation by Bidirectional Training", section 2, an epoch reads each pair in both directions.

    >>> reversed_rows(6, seed=1, epoch=0).tolist()
    [True, False, False, False, False, True]
    >>> reversed_rows(6, seed=1, epoch=1).tolist()
    [False, True, True, True, True, False]
    """
    is_reversed_in_even_epochs_R: NDArray[np.bool_] = np.random.default_rng([seed, n_rows]).random(n_rows) < 0.5
    return is_reversed_in_even_epochs_R ^ bool(epoch % 2)
