from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from transduce.data import batch_statistics, plan_batches, plan_by_length
from transduce.errors import DataError

PAIRS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=200)
Lengths = NDArray[np.int32]


def sides(pairs: list[tuple[int, int]]) -> tuple[Lengths, Lengths]:
    table = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def as_sets(batches: list[NDArray[np.int64]]) -> list[set[int]]:
    return [set(batch.tolist()) for batch in batches]


@given(PAIRS, st.integers(30, 400), st.integers(0, 3), st.integers(0, 3))
def test_every_row_once_and_within_the_budget(
    pairs: list[tuple[int, int]], max_tokens: int, seed: int, epoch: int
) -> None:
    src, tgt = sides(pairs)
    batches = plan_batches(src, tgt, max_tokens=max_tokens, seed=seed, epoch=epoch)
    assert sorted(row for batch in batches for row in batch) == list(range(len(pairs)))
    for batch in batches:
        assert len(batch) * src[batch].max() <= max_tokens
        assert len(batch) * tgt[batch].max() <= max_tokens


@given(PAIRS, st.integers(0, 5), st.integers(0, 5))
def test_the_same_arguments_give_the_same_plan(pairs: list[tuple[int, int]], seed: int, epoch: int) -> None:
    src, tgt = sides(pairs)
    first = plan_batches(src, tgt, max_tokens=90, seed=seed, epoch=epoch)
    again = plan_batches(src.astype(np.int64), tgt.astype(np.int64), max_tokens=90, seed=seed, epoch=epoch)
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in again]


@given(PAIRS.filter(bool), st.integers(1, 29))
def test_a_pair_that_cannot_fit_is_refused(pairs: list[tuple[int, int]], max_tokens: int) -> None:
    src, tgt = sides(pairs)
    if max(map(max, pairs)) <= max_tokens:
        assert plan_batches(src, tgt, max_tokens=max_tokens, seed=0, epoch=0)
    else:
        with pytest.raises(DataError, match=f"at least {max(map(max, pairs))},"):
            plan_batches(src, tgt, max_tokens=max_tokens, seed=0, epoch=0)


@given(PAIRS, st.integers(30, 400))
def test_batches_cannot_be_joined_with_the_next_longer_row(pairs: list[tuple[int, int]], max_tokens: int) -> None:
    src, tgt = sides(pairs)
    longest = np.maximum(src, tgt)
    batches = plan_batches(src, tgt, max_tokens=max_tokens, seed=0, epoch=0)
    batches.sort(key=lambda batch: (longest[batch].min(), longest[batch].max(), -len(batch)))  # as they were cut
    for batch, after in pairwise(batches):
        assert longest[batch].max() <= longest[after].min()
        assert (len(batch) + 1) * longest[after].min() > max_tokens


@given(st.lists(st.integers(0, 50), max_size=100), st.integers(1, 100))
def test_plan_for_search_holds_every_sentence_once(lengths: list[int], max_tokens: int) -> None:
    lengths = [length + 1 for length in lengths]
    batches = plan_by_length(lengths, max_tokens=max_tokens)
    order = [row for batch in batches for row in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[row] for row in order] == sorted(lengths)
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= max_tokens


@given(PAIRS.filter(bool))
def test_statistics_count_what_a_loop_counts(pairs: list[tuple[int, int]]) -> None:
    src, tgt = sides(pairs)
    batches = plan_batches(src, tgt, max_tokens=60, seed=0, epoch=0)
    statistics = batch_statistics(src, tgt, batches)
    real = padding = 0
    for rows in as_sets(batches):
        for side in (src, tgt):
            longest = max(int(side[row]) for row in rows)
            real += sum(int(side[row]) for row in rows)
            padding += sum(longest - int(side[row]) for row in rows)
    assert statistics.n_src_tokens + statistics.n_tgt_tokens == real
    assert statistics.padding_fraction == pytest.approx(padding / (real + padding))
    assert (statistics.n_pairs, statistics.n_batches) == (len(pairs), len(batches))
