"""Intervals of differences of means, by Student's t with a standard deviation pooled over groups of seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from statistics import mean

from scipy.stats import t

__all__ = [
    "NEARLY_IDENTICAL", "NO_CELLS", "Interval", "half_width_of_mean", "half_width_of_share", "interval_of_difference",
    "pooled_deviation", "student_t",
]  # fmt: skip


NEARLY_IDENTICAL = 0.02  # share of a perplexity up to which another one counts as equal
NO_CELLS = (None, None)  # of a row without an interval


@dataclass(frozen=True, slots=True)
class Interval:
    """A difference of two means and half of its 95 % interval."""

    difference: float
    half_width: float

    @property
    def is_above_zero(self) -> bool | None:
        """Whether the whole interval is above zero (True) or below it (False); None if it includes zero."""
        return None if abs(self.difference) <= self.half_width else self.difference > 0

    def __neg__(self) -> Interval:
        """Return the difference the other way round."""
        return Interval(-self.difference, self.half_width)

    def is_within(self, bound: float) -> bool | None:
        """Whether the whole interval is between -bound and bound (True) or outside (False); None if it is neither.

        >>> [Interval(difference, 0.2).is_within(1.0) for difference in (0.5, 1.5, 0.9)]
        [True, False, None]
        """
        low, high = abs(self.difference) - self.half_width, abs(self.difference) + self.half_width
        return True if high <= bound else False if low > bound else None

    @property
    def cells(self) -> tuple[float, float]:
        """The difference and the half width, for a table."""
        return self.difference, self.half_width

    def __str__(self) -> str:
        return f"{self.difference:+.2f} ± {self.half_width:.2f}"


def interval_of_difference(
    ours: Sequence[float], theirs: Sequence[float], groups: Iterable[Sequence[float]]
) -> Interval:
    """Return mean(ours) - mean(theirs) with its 95 % interval.

    The standard deviation of one value is pooled over all ``groups``, which have the same one by assumption.
    Raises ValueError unless one of them has several values.

    >>> print(interval_of_difference([3, 5], [1, 3], [[3, 5], [1, 3]]))
    +2.00 ± 6.08
    """
    deviation, freedom = pooled_deviation(groups)
    standard_error = deviation * sqrt(1 / len(ours) + 1 / len(theirs))
    return Interval(mean(ours) - mean(theirs), student_t(freedom) * standard_error)


def half_width_of_mean(n_values: int, groups: Iterable[Sequence[float]]) -> float:
    """Return half of the 95 % interval of the mean of so many values, whose standard deviation is that of ``groups``.

    Raises ValueError unless one of them has several values.

    >>> f"{half_width_of_mean(2, [[3, 5], [1, 3]]):.2f}"
    '4.30'
    """
    deviation, freedom = pooled_deviation(groups)
    return student_t(freedom) * deviation / sqrt(n_values)


def half_width_of_share(share: float, n: int) -> float:
    """Return half of the 95 % interval of a share of ``n`` independent trials, by the normal approximation.

    >>> round(half_width_of_share(0.5, 100), 3)
    0.098
    """
    return 1.96 * sqrt(share * (1 - share) / n)


def pooled_deviation(groups: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Return the standard deviation of one value, pooled over groups, and its degrees of freedom.

    Raises ValueError unless a group has several values.
    """
    several = [group for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in several)
    if not freedom:
        raise ValueError("a standard deviation needs a group of several values")
    squares = sum((value - mean(group)) ** 2 for group in several for value in group)
    return sqrt(squares / freedom), freedom


@cache
def student_t(freedom: int) -> float:
    """Return the number of standard errors within which 95 % of the values of Student's t are.

    >>> [round(student_t(freedom), 3) for freedom in (1, 4, 16, 1000)]
    [12.706, 2.776, 2.12, 1.962]
    """
    return float(t.ppf(0.975, freedom))
