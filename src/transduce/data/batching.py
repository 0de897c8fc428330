"""Which rows go into which batch: pure functions of lengths. Section 5.1.

A batch is bounded by its size as a rectangle: rows x longest, end symbols included, on each side by itself. Lengths are
counted with the end symbol everywhere in this file.
"""

# N rows of the store, or sentences; R rows that an epoch reads

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.errors import DataError

__all__ = ["BatchStatistics", "batch_statistics", "plan_batches", "plan_by_length", "require_fit"]

IntArray = NDArray[np.signedinteger[Any]]


def require_fit(src_lengths_N: IntArray, tgt_lengths_N: IntArray, *, max_tokens: int) -> None:
    """Raises DataError if a row is longer than ``max_tokens`` on a side: no batch holds it."""
    longest_N = np.maximum(src_lengths_N, tgt_lengths_N)
    if longest_N.max(initial=0) > max_tokens:
        row = int(np.argmax(longest_N > max_tokens))
        raise DataError(
            f"row {row} has {src_lengths_N[row]:,} source and {tgt_lengths_N[row]:,} target tokens, end symbols "
            f"included, but a batch holds {max_tokens:,} a side; raise max_tokens_per_batch to at least "
            f"{longest_N.max():,}, or lower max_length to at most {max_tokens:,}"
        )


def plan_batches(
    src_lengths_N: IntArray,
    tgt_lengths_N: IntArray,
    *,
    max_tokens: int,
    seed: int,
    epoch: int,
    rows_R: NDArray[np.int64] | None = None,
) -> list[NDArray[np.int64]]:
    """The batches of one epoch: every row exactly once, rows of about equal length together. Section 5.1.

    ``rows_R``: the rows to read, each as often as it stands there, instead of every row of the store.
    The batches come in random order, and rows of equal lengths change places from epoch to epoch. The same arguments
    give the same plan on every machine.

    Raises DataError if a row is longer than ``max_tokens`` on a side.

    >>> lengths = np.array([3, 9, 3, 8])
    >>> [batch.tolist() for batch in plan_batches(lengths, lengths, max_tokens=18, seed=1, epoch=0)]
    [[0, 2], [3, 1]]
    """
    require_fit(src_lengths_N, tgt_lengths_N, max_tokens=max_tokens)
    if rows_R is None:
        rows_R = np.arange(len(src_lengths_N))
    src_lengths_R, tgt_lengths_R = src_lengths_N[rows_R], tgt_lengths_N[rows_R]
    longest_R = np.maximum(src_lengths_R, tgt_lengths_R).astype(np.int64)
    random = np.random.default_rng([seed, epoch])
    order_R = _by_length(src_lengths_R, tgt_lengths_R, random)
    batches = _cut(order_R, longest_R[order_R], max_tokens)
    return [rows_R[batches[index]] for index in random.permutation(len(batches))]


def plan_by_length(lengths_N: IntArray | Sequence[int], *, max_tokens: int) -> list[NDArray[np.int64]]:
    """Batches for search: sentences from the shortest to the longest, as many as fit into ``max_tokens``.

    A sentence longer than ``max_tokens`` is a batch of its own: it must be translated all the same. The indices tell
    where each result belongs.

    >>> [batch.tolist() for batch in plan_by_length([5, 2, 30, 4], max_tokens=10)]
    [[1, 3], [0], [2]]
    """
    longest_N = np.asarray(lengths_N, dtype=np.int64)
    rows_N = np.argsort(longest_N, kind="stable")
    return _cut(rows_N, longest_N[rows_N], max_tokens)


def _by_length(src_lengths_N: IntArray, tgt_lengths_N: IntArray, random: np.random.Generator) -> NDArray[np.int64]:
    """Rows by their longer side, then by how much the source is longer: neighbours are alike on both sides.

    The second order goes up and down in turn, so that it does not jump where the first one steps. Of a dozen orders
    tried on English-German text this one pads least: 2 to 5 % at 4,096 tokens a batch, where rows by target and then
    source pad 5 to 13 %.
    """
    longest_N = np.maximum(src_lengths_N, tgt_lengths_N)
    excess_N = np.subtract(src_lengths_N, tgt_lengths_N, dtype=np.int64)
    excess_N[longest_N % 2 == 0] *= -1
    return np.lexsort((random.permutation(len(longest_N)), excess_N, longest_N))


def _cut(rows_N: NDArray[np.int64], longest_N: NDArray[np.int64], max_tokens: int) -> list[NDArray[np.int64]]:
    """Cut rows, sorted by ``longest_N``, into the largest batches that fit; a row that never fits stands alone."""
    cuts = [0]
    while cuts[-1] < len(rows_N):
        start = cuts[-1]
        most = max(1, max_tokens // int(longest_N[start]))
        window = longest_N[start : start + most]
        rectangles = window * np.arange(1, len(window) + 1)  # tokens of a batch that ends here; never falls
        cuts.append(start + max(1, int(np.searchsorted(rectangles, max_tokens, side="right"))))
    return [rows_N[start:end] for start, end in pairwise(cuts)]


@dataclass(frozen=True, slots=True)
class BatchStatistics:
    """How full the batches of a plan are. Tokens are real, end symbols included; positions count padding too."""

    n_batches: int
    n_pairs: int
    n_src_tokens: int
    n_tgt_tokens: int
    n_src_positions: int
    n_tgt_positions: int

    @property
    def padding_share(self) -> float:
        """The part of all positions, of both sides, that is padding."""
        return 1 - (self.n_src_tokens + self.n_tgt_tokens) / (self.n_src_positions + self.n_tgt_positions)


def batch_statistics(
    src_lengths_N: IntArray, tgt_lengths_N: IntArray, batches: Sequence[NDArray[np.int64]]
) -> BatchStatistics:
    """Count tokens and positions of ``batches``.

    >>> batch_statistics(np.array([2, 4]), np.array([3, 3]), [np.array([0, 1])]).padding_share
    0.1428...
    """
    return BatchStatistics(
        n_batches=len(batches),
        n_pairs=sum(len(rows) for rows in batches),
        n_src_tokens=sum(int(src_lengths_N[rows].sum()) for rows in batches),
        n_tgt_tokens=sum(int(tgt_lengths_N[rows].sum()) for rows in batches),
        n_src_positions=sum(len(rows) * int(src_lengths_N[rows].max()) for rows in batches),
        n_tgt_positions=sum(len(rows) * int(tgt_lengths_N[rows].max()) for rows in batches),
    )
