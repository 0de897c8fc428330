"""Lexical translation probabilities p(target token | source token), by IBM Model 1 (Brown et al., 1993).

Every target token of a pair translates one of its source tokens, or the null word; which one is not known. Expectation
maximisation (EM) estimates the probabilities, from equal ones.

Shapes: B pairs of a chunk, P target tokens of a chunk, J combinations of a target token with each source token of its
pair, I distinct combinations of the text, V source vocabulary, R target tokens of each source token.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from transduce.data.columns import Ragged
from transduce.text import PAD_ID

__all__ = ["Lexicon", "Rows", "train_lexicon"]

NULL_ID = PAD_ID  # the null word; padding occurs in no text
PAIRS_PER_CHUNK = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """Lexical translation probabilities, sorted by source token, and by decreasing probability within."""

    src_ids_I: NDArray[np.int64]
    tgt_ids_I: NDArray[np.int64]
    probabilities_I: NDArray[np.float64]

    def best(self, n: int, *, src_vocab_size: int, fill_id: int) -> NDArray[np.int32]:
        """The ``n`` most probable target tokens of each source token, (V, R); ``fill_id`` where there are fewer."""
        best_VR = np.full((src_vocab_size, n), fill_id, dtype=np.int32)
        n_before_V = np.searchsorted(self.src_ids_I, np.arange(src_vocab_size))
        rank_I = np.arange(len(self.src_ids_I)) - n_before_V[self.src_ids_I]
        is_best_I = rank_I < n
        best_VR[self.src_ids_I[is_best_I], rank_I[is_best_I]] = self.tgt_ids_I[is_best_I]
        return best_VR


class Rows(Protocol):
    """One side of pairs: rows of ids, such as a column of a store."""

    def gather(self, rows_B: NDArray[np.int64], /) -> Ragged:
        """Return some rows."""


def train_lexicon(src: Rows, tgt: Rows, rows: NDArray[np.int64], *, n_iterations: int = 5) -> Lexicon:
    """Estimate the probabilities from some pairs of rows, in ``n_iterations`` of EM.

    Memory is proportional to the number of distinct combinations, some 20 bytes each.
    """
    keys_I = _merged(_Chunk.read(src, tgt, chunk_rows).keys_J for chunk_rows in _chunks_of(rows))
    src_ids_I, tgt_ids_I = keys_I >> 32, keys_I & 0xFFFFFFFF
    probabilities_I = np.ones(len(keys_I))  # only proportions matter
    for _ in range(n_iterations):
        counts_I = np.zeros(len(keys_I))
        for chunk_rows in _chunks_of(rows):
            chunk = _Chunk.read(src, tgt, chunk_rows)
            distinct, place_J = np.unique(chunk.keys_J, return_inverse=True)
            index = np.searchsorted(keys_I, distinct)  # sorted: far fewer cache misses
            posteriors_J = chunk.posteriors(probabilities_I[index][place_J])
            counts_I[index] += np.bincount(place_J, posteriors_J)
        probabilities_I = counts_I / np.bincount(src_ids_I, counts_I)[src_ids_I]
    order_I = np.lexsort((-probabilities_I, src_ids_I))
    return Lexicon(src_ids_I[order_I], tgt_ids_I[order_I], probabilities_I[order_I])


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """The combinations of some pairs: for each target token in turn, the null word and each source token."""

    keys_J: NDArray[np.int64]  # source id in the high 32 bits, target id in the low ones
    n_sources_P: NDArray[np.int64]  # combinations of each target token

    @classmethod
    def read(cls, of_source: Rows, of_target: Rows, rows_B: NDArray[np.int64]) -> _Chunk:
        src, tgt = of_source.gather(rows_B), of_target.gather(rows_B)
        src_ids, starts_B = _with_null(src)
        n_sources_P = np.repeat(src.lengths_B + 1, tgt.lengths_B)
        first_P = np.repeat(starts_B, tgt.lengths_B)
        n_before_P = np.cumsum(n_sources_P) - n_sources_P
        index_J = np.arange(n_sources_P.sum()) + np.repeat(first_P - n_before_P, n_sources_P)
        keys_J = src_ids[index_J] << 32 | np.repeat(tgt.values_N.astype(np.int64), n_sources_P)
        return cls(keys_J, n_sources_P)

    def posteriors(self, p_J: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability of each combination given the pair: its p divided by the sum over the target token's."""
        sums_P = np.add.reduceat(p_J, np.cumsum(self.n_sources_P) - self.n_sources_P)
        posteriors_J: NDArray[np.float64] = p_J / np.repeat(sums_P, self.n_sources_P)
        return posteriors_J


def _with_null(rows: Ragged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ids of all rows with the null word before each, and where each row starts, (B,)."""
    starts_B = np.cumsum(rows.lengths_B) - rows.lengths_B
    ids: NDArray[np.int64] = np.insert(rows.values_N.astype(np.int64), starts_B, NULL_ID)
    return ids, starts_B + np.arange(len(rows))


def _chunks_of(rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    return (rows[start : start + PAIRS_PER_CHUNK] for start in range(0, len(rows), PAIRS_PER_CHUNK))


def _merged(chunks: Iterator[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The distinct keys of all chunks, sorted."""
    empty: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    merge: Any = np.union1d
    return reduce(merge, map(np.unique, chunks), empty)
