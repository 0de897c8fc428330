"""Batch planning: pure functions from sentence lengths to batches. Section 5.1.

The budget bounds the padded size of a batch, rows x longest, on each side separately. All lengths in this file include
the EOS token.

Shapes: R rows of the store, or sentences to search; I rows that an epoch reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from transduce.errors import DataError
from transduce.imports import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    IntArray = NDArray[np.signedinteger[Any]]

__all__ = ["BatchStatistics", "batch_statistics", "plan_batches", "plan_by_length", "require_fit"]


def require_fit(src_lengths_R: IntArray, tgt_lengths_R: IntArray, *, max_tokens: int) -> None:
    """Raise DataError if a row is longer than ``max_tokens`` on a side and fits into no batch."""
    longest_R = np.maximum(src_lengths_R, tgt_lengths_R)
    if longest_R.max(initial=0) > max_tokens:
        row = int(np.argmax(longest_R > max_tokens))
        raise DataError(
            f"row {row} has {src_lengths_R[row]:,} source and {tgt_lengths_R[row]:,} target tokens, EOS included, but "
            f"a batch holds {max_tokens:,} per side; raise max_tokens_per_batch to at least {longest_R.max():,}, or "
            f"lower max_length to at most {max_tokens:,}"
        )


def plan_batches(
    src_lengths_R: IntArray,
    tgt_lengths_R: IntArray,
    *,
    max_tokens: int,
    seed: int,
    epoch: int,
    rows_I: NDArray[np.int64] | None = None,
) -> list[NDArray[np.int64]]:
    """Plan the batches of one epoch: every row exactly once, grouped by approximate length. Section 5.1.

    ``rows_I``: the rows to read, possibly with repeats; all rows of the store by default.
    Batches, and rows of equal lengths, are shuffled for each epoch. The plan depends on the arguments only, not on the
    machine.

    Raises DataError if a row is longer than ``max_tokens`` on a side.

    >>> lengths = np.array([3, 9, 3, 8])
    >>> [batch.tolist() for batch in plan_batches(lengths, lengths, max_tokens=18, seed=1, epoch=0)]
    [[0, 2], [3, 1]]
    """
    require_fit(src_lengths_R, tgt_lengths_R, max_tokens=max_tokens)
    if rows_I is None:
        rows_I = np.arange(len(src_lengths_R))
    src_lengths_I, tgt_lengths_I = src_lengths_R[rows_I], tgt_lengths_R[rows_I]
    longest_I = np.maximum(src_lengths_I, tgt_lengths_I).astype(np.int64)
    random = np.random.default_rng([seed, epoch])
    order_I = _by_length(src_lengths_I, tgt_lengths_I, random)
    batches = _cut(order_I, longest_I[order_I], max_tokens)
    return [rows_I[batches[index]] for index in random.permutation(len(batches))]


def plan_by_length(lengths: Sequence[int], *, max_tokens: int) -> list[list[int]]:
    """Plan batches for search: sentences sorted by length, as many per batch as fit into ``max_tokens``.

    A sentence longer than ``max_tokens`` becomes a batch of its own. Returns the sentence indices of each batch.

    >>> plan_by_length([5, 2, 30, 4], max_tokens=10)
    [[1, 3], [0], [2]]
    """
    batches: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not batches or (len(batches[-1]) + 1) * lengths[row] > max_tokens:
            batches.append([])
        batches[-1].append(row)
    return batches


def _by_length(src_lengths_R: IntArray, tgt_lengths_R: IntArray, random: np.random.Generator) -> NDArray[np.int64]:
    """Sort rows by their longer side, then by source minus target length, so that neighbours are alike on both sides.

    The second key alternates between ascending and descending, so that it does not jump where the first key changes.
    Of a dozen orders tried on English-German text this one pads least: 2 to 5 % at 4,096 tokens per batch, against 5 to
    13 % when sorting by target, then source.
    """
    longest_R = np.maximum(src_lengths_R, tgt_lengths_R)
    excess_R = np.subtract(src_lengths_R, tgt_lengths_R, dtype=np.int64)
    excess_R[longest_R % 2 == 0] *= -1
    return np.lexsort((random.permutation(len(longest_R)), excess_R, longest_R))


def _cut(rows_R: NDArray[np.int64], longest_R: NDArray[np.int64], max_tokens: int) -> list[NDArray[np.int64]]:
    """Cut rows sorted by ``longest_R`` into maximal batches; a row that is too long is a batch by itself."""
    cuts = [0]
    while cuts[-1] < len(rows_R):
        start = cuts[-1]
        max_rows = max(1, max_tokens // int(longest_R[start]))
        candidates = longest_R[start : start + max_rows]
        sizes = candidates * np.arange(1, len(candidates) + 1)  # padded size of a batch that ends here; non-decreasing
        cuts.append(start + max(1, int(np.searchsorted(sizes, max_tokens, side="right"))))
    return [rows_R[start:end] for start, end in pairwise(cuts)]


@dataclass(frozen=True, slots=True)
class BatchStatistics:
    """Token and position counts of a plan: tokens are real, EOS included; positions include padding."""

    n_batches: int
    n_pairs: int
    n_src_tokens: int
    n_tgt_tokens: int
    n_src_positions: int
    n_tgt_positions: int

    @property
    def padding_fraction(self) -> float:
        """Fraction of the positions of both sides that is padding."""
        return 1 - (self.n_src_tokens + self.n_tgt_tokens) / (self.n_src_positions + self.n_tgt_positions)


def batch_statistics(
    src_lengths_R: IntArray, tgt_lengths_R: IntArray, batches: Sequence[NDArray[np.int64]]
) -> BatchStatistics:
    """Count the tokens and positions of ``batches``.

    >>> batch_statistics(np.array([2, 4]), np.array([3, 3]), [np.array([0, 1])]).padding_fraction
    0.1428...
    """
    return BatchStatistics(
        n_batches=len(batches),
        n_pairs=sum(len(rows) for rows in batches),
        n_src_tokens=sum(int(src_lengths_R[rows].sum()) for rows in batches),
        n_tgt_tokens=sum(int(tgt_lengths_R[rows].sum()) for rows in batches),
        n_src_positions=sum(len(rows) * int(src_lengths_R[rows].max()) for rows in batches),
        n_tgt_positions=sum(len(rows) * int(tgt_lengths_R[rows].max()) for rows in batches),
    )
