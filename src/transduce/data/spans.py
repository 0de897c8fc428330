"""Span corruption: the pairs of text-to-text pre-training. Raffel et al. (2020), section 3.1.4.

Some spans of a segment are removed. In the source each of them is replaced by a sentinel of its own; the target is each
sentinel with its span, and one more sentinel at the end::

    segment  Thank you for inviting me to your party last week .
    source   Thank you <extra_id_0> me to your party <extra_id_1> week .
    target   <extra_id_0> for inviting <extra_id_1> last <extra_id_2>

Every epoch removes other spans, which follow from the seed, the epoch and the number of the segment alone.

Shapes: T tokens of a segment.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["MEAN_SPAN", "P_REMOVED", "corrupt", "restored", "span_counts", "spans_of"]

P_REMOVED = 0.15  # of a segment's tokens
MEAN_SPAN = 3.0  # tokens


def span_counts(n_tokens: NDArray[np.int64], *, max_spans: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many of ``n_tokens`` tokens (at least 1) are removed, and in how many spans.

    >>> [each.tolist() for each in span_counts(np.array([1, 2, 20, 100]), max_spans=99)]
    [[1, 1, 3, 15], [1, 1, 1, 5]]
    """
    n_removed = np.maximum(1, np.floor(P_REMOVED * n_tokens + 0.5).astype(np.int64))
    n_spans = np.floor(n_removed / MEAN_SPAN + 0.5).astype(np.int64)
    # Enough tokens are left to separate the spans: 0.05 of 0.85.
    return n_removed, np.clip(n_spans, 1, max_spans)


def corrupt(
    ids_T: NDArray[np.int64], sentinels: Sequence[int], random: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Return source and target of a segment, without EOS and BOS.

    >>> source, target = corrupt(np.arange(10, 20), [50, 51], np.random.default_rng(1))
    >>> source, target
    ([10, 11, 12, 13, 50, 16, 17, 18, 19], [50, 14, 15, 51])
    """
    (n_removed,), (n_spans,) = span_counts(np.array([len(ids_T)]), max_spans=len(sentinels) - 1)
    removed = _random_parts(int(n_removed), int(n_spans), random)
    # One more part than spans; the first and the last may be empty, the others separate two spans.
    first, *between, last = _random_parts(len(ids_T) - int(n_removed) + 2, int(n_spans) + 1, random)
    source, target, position = list[int](), list[int](), 0
    for sentinel, n_kept, n_in_span in zip(sentinels, [first - 1, *between], removed, strict=False):
        source += [*ids_T[position : position + n_kept].tolist(), sentinel]
        position += n_kept
        target += [sentinel, *ids_T[position : position + n_in_span].tolist()]
        position += n_in_span
    source += ids_T[position : position + last - 1].tolist()
    return source, [*target, sentinels[len(removed)]]


def _random_parts(total: int, n_parts: int, random: np.random.Generator) -> list[int]:
    """Return the lengths of ``n_parts`` parts of at least 1 that make up ``total``, each division equally probable."""
    cuts = np.sort(random.choice(total - 1, size=n_parts - 1, replace=False)) + 1
    return [end - start for start, end in pairwise([0, *cuts.tolist(), total])]


def spans_of(target: Sequence[int], sentinels: Collection[int]) -> dict[int, list[int]]:
    """Return the spans of a target by their sentinels; what stands before the first sentinel belongs to none.

    >>> spans_of([50, 18, 19, 51], [50, 51])
    {50: [18, 19], 51: []}
    """
    spans: dict[int, list[int]] = {}
    span = list[int]()
    for id in target:
        if id in sentinels:
            span = spans.setdefault(id, [])
        else:
            span.append(id)
    return spans


def restored(source: Sequence[int], target: Sequence[int], sentinels: Collection[int]) -> list[int]:
    """Return the segment of a source and its target.

    >>> restored([10, 50, 13], [50, 11, 12, 51], [50, 51])
    [10, 11, 12, 13]
    """
    spans, sentinels = spans_of(target, sentinels), set(sentinels)
    return [token for id in source for token in (spans.get(id, []) if id in sentinels else [id])]
