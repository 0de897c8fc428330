"""Which rows of a store an epoch reads: all pairs, or each corpus by its weight, and one encoding of each pair.

And which way: from the source to the target, or for a while half of them from the target to the source.
"""

# P pairs of one corpus, N rows of the store

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import floor

import numpy as np
from numpy.typing import NDArray

__all__ = ["epoch_rows", "reversed_rows"]


def epoch_rows(
    n_pairs_of: Sequence[int], weights: Sequence[float], *, n_encodings: int, seed: int, epoch: int
) -> NDArray[np.int64]:
    """The rows that an epoch reads, in the order of the store; a pure function, the same on every machine.

    A corpus of weight 2 is read twice in an epoch, and of one of weight 0.25 each epoch reads another quarter, so that
    four epochs read every pair once. Each time that a pair is read it is another of its encodings, until all were.

    >>> epoch_rows([3, 4], [1.0, 0.5], n_encodings=1, seed=1, epoch=0).tolist()
    [0, 1, 2, 3, 5]
    >>> epoch_rows([3, 4], [1.0, 0.5], n_encodings=1, seed=1, epoch=1).tolist()
    [0, 1, 2, 4, 6]
    """
    rows, n_before = [], 0
    for corpus, (n_pairs, weight) in enumerate(zip(n_pairs_of, weights, strict=True)):
        random = np.random.default_rng([seed, corpus])
        order_P, first_P = random.permutation(n_pairs), random.integers(n_encodings, size=n_pairs)
        begin, end = floor(epoch * weight * n_pairs), floor((epoch + 1) * weight * n_pairs)
        reads = np.arange(begin, end)  # all reads of this corpus in a run are one endless walk round its pairs
        pairs = order_P[reads % n_pairs]
        encodings = (first_P[pairs] + reads // n_pairs) % n_encodings
        rows.append(np.sort((n_before + pairs) * n_encodings + encodings))
        n_before += n_pairs
    return np.concatenate(rows)


@lru_cache(maxsize=1)  # every batch of an epoch asks
def reversed_rows(n_rows: int, *, seed: int, epoch: int) -> NDArray[np.bool_]:
    """For each row, whether this epoch reads it from the target to the source, where training goes both ways; (N,).

    About half of them, and the other half in the epoch after. Ding et al. (2021), "Improving Neural Machine Translation
    by Bidirectional Training", section 2, reads each pair twice in an epoch.

    >>> reversed_rows(6, seed=1, epoch=0).tolist()
    [True, False, False, False, False, True]
    >>> reversed_rows(6, seed=1, epoch=1).tolist()
    [False, True, True, True, True, False]
    """
    is_odd_N: NDArray[np.bool_] = np.random.default_rng([seed, n_rows]).random(n_rows) < 0.5
    return is_odd_N ^ bool(epoch % 2)
