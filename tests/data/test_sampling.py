"""The rows that an epoch reads: all by default, corpora by weight, encodings in turn."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from transduce.data import epoch_rows, plan_batches, reversed_rows

SIZES = st.lists(st.integers(1, 30), min_size=1, max_size=4)


@given(SIZES, st.integers(0, 50))
def test_without_weights_and_dropout_an_epoch_is_the_store(sizes: list[int], epoch: int) -> None:
    rows = epoch_rows(sizes, [1.0] * len(sizes), n_encodings=1, seed=3, epoch=epoch)
    assert rows.tolist() == list(range(sum(sizes)))


@given(st.lists(st.tuples(st.integers(1, 30), st.floats(0.05, 4.0)), min_size=1, max_size=4), st.integers(1, 5))
def test_over_many_epochs_each_pair_is_read_by_its_weight(corpora: list[tuple[int, float]], n_encodings: int) -> None:
    sizes, weights = [size for size, _ in corpora], [weight for _, weight in corpora]
    n_epochs = 12
    counts: Counter[int] = Counter()
    for epoch in range(n_epochs):
        counts.update(
            (epoch_rows(sizes, weights, n_encodings=n_encodings, seed=1, epoch=epoch) // n_encodings).tolist()
        )
    begin = 0
    for size, weight in corpora:
        reads = [counts[pair] for pair in range(begin, begin + size)]
        assert max(reads) - min(reads) <= 1  # no pair is read twice before all are read once
        assert sum(reads) == math.floor(n_epochs * Fraction(str(weight)) * size)
        begin += size


@example(100, 1, 28)  # 29 times 0.01 is a little less than 0.29
@given(st.integers(1, 400), st.integers(1, 400), st.integers(0, 2000))
def test_epochs_differ_by_one_pair_at_most_and_only_if_the_weight_is_no_whole_number_of_pairs(
    size: int, hundredths: int, epoch: int
) -> None:
    n_rows = len(epoch_rows([size], [hundredths / 100], n_encodings=1, seed=1, epoch=epoch))
    assert size * hundredths // 100 <= n_rows <= -(-size * hundredths // 100)


def test_all_encodings_of_a_pair_have_their_turn() -> None:
    seen = [epoch_rows([6], [2.0], n_encodings=4, seed=1, epoch=epoch) for epoch in range(2)]
    assert sorted(np.concatenate(seen).tolist()) == list(
        range(24)
    )  # two epochs x two reads: each of four encodings once
    first = epoch_rows([200], [1.0], n_encodings=4, seed=1, epoch=0) % 4
    assert min(Counter(first.tolist()).values()) > 30  # first encodings differ between pairs


def test_seed_and_epoch_choose() -> None:
    half = [epoch_rows([40], [0.5], n_encodings=1, seed=seed, epoch=0).tolist() for seed in (1, 1, 2)]
    assert half[0] == half[1] != half[2]
    assert len(half[0]) == 20


def test_a_plan_of_some_rows_has_each_as_often_as_it_was_named() -> None:
    lengths = np.array([3, 9, 4, 8, 5])
    rows = np.array([1, 1, 4, 0])
    plan = plan_batches(lengths, lengths, max_tokens=18, seed=1, epoch=0, rows_I=rows)
    assert sorted(np.concatenate(plan).tolist()) == [0, 1, 1, 4]
    assert all(len(batch) * lengths[batch].max() <= 18 for batch in plan)


@given(st.integers(1, 3000), st.integers(0, 9), st.integers(0, 20))
def test_two_epochs_read_each_pair_both_ways(n_rows: int, seed: int, epoch: int) -> None:
    turned, then = (reversed_rows(n_rows, seed=seed, epoch=number) for number in (epoch, epoch + 1))
    assert (turned ^ then).all()
    assert np.array_equal(turned, reversed_rows(n_rows, seed=seed, epoch=epoch + 2))
    assert n_rows < 1000 or abs(turned.mean() - 0.5) < 0.1
