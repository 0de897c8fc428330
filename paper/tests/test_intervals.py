"""Intervals of differences: Student's t against a printed table, and pooling by hand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce_paper.intervals import Interval, half_width_of_mean, interval_of_difference, pooled_deviation, student_t

TABLE = [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (6, 2.447), (7, 2.365), (10, 2.228), (16, 2.120)]


@pytest.mark.parametrize(("freedom", "t"), [*TABLE, (30, 2.042), (120, 1.980)])
def test_students_t_is_that_of_the_tables(freedom: int, t: float) -> None:
    assert student_t(freedom) == pytest.approx(t, abs=6e-4)


def test_the_deviation_is_pooled() -> None:
    deviation, freedom = pooled_deviation([[1, 3], [10, 10, 13], [7]])
    assert freedom == 3
    assert deviation == pytest.approx(((2 + 6) / 3) ** 0.5)
    with pytest.raises(ValueError, match="several"):
        pooled_deviation([[1], [2]])


@given(st.lists(st.floats(-9, 9), min_size=2, max_size=4), st.lists(st.floats(-9, 9), min_size=2, max_size=4))
def test_the_interval_turns_around(ours: list[float], theirs: list[float]) -> None:
    one, other = (interval_of_difference(a, b, [ours, theirs]) for a, b in ((ours, theirs), (theirs, ours)))
    assert one.difference == pytest.approx(-other.difference)
    assert one.half_width == pytest.approx(other.half_width)


def test_a_sign_needs_an_interval_without_zero() -> None:
    assert [Interval(each, 1.0).is_above_zero for each in (2.0, -2.0, 0.5, 1.0)] == [True, False, None, None]
    assert str(Interval(-0.5, 1.25)) == "-0.50 ± 1.25"


def test_nineteen_of_twenty_intervals_include_the_difference() -> None:
    rng = random.Random(1)
    n_trials, n_inside = 4000, 0
    for _ in range(n_trials):
        groups = [[rng.gauss(mu, 2.0) for _ in range(2)] for mu in (1.0, 4.0, 2.0)]
        interval = interval_of_difference(groups[1], groups[0], groups)
        n_inside += abs(interval.difference - 3.0) <= interval.half_width
    assert n_inside / n_trials == pytest.approx(0.95, abs=0.012)


def test_the_interval_of_a_mean() -> None:
    """A mean varies less than a difference of two such means by a factor of the square root of two."""
    groups = [[1.0, 3.0], [2.0, 5.0]]
    of_difference = interval_of_difference(*groups, groups).half_width
    assert half_width_of_mean(2, groups) == pytest.approx(of_difference / 2**0.5)
