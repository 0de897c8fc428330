"""Growth rates of measured costs: power-law exponents, slopes and crossing points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import linregress

__all__ = ["crossing", "exponent", "per_unit"]


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return b of the best fit values = a * sizes^b, by least squares of log values over log sizes.

    Raises ValueError for fewer than two different sizes, or for a size or value of 0 or less.

    >>> exponent([1, 2, 4], [3, 12, 48])
    2.0
    """
    _require(sizes, values)
    if min(*sizes, *values) <= 0:
        raise ValueError(f"a power law needs positive numbers, got {list(sizes)} and {list(values)}")
    return round(float(linregress(np.log(sizes), np.log(values)).slope), 12)


def per_unit(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of values over sizes, by least squares.

    Raises ValueError for fewer than two different sizes.

    >>> per_unit([10, 20, 30], [7, 27, 47])
    2.0
    """
    _require(sizes, values)
    return round(float(linregress(sizes, values).slope), 12)


def crossing(sizes: Sequence[float], rising: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the size above which ``rising`` stays larger than ``other``, interpolated along power laws.

    None if ``rising`` is not larger at the largest size; 0 if it is larger at every size.

    >>> f"{crossing([10, 1000], [100, 1_000_000], [1000, 100_000]):.1f}"
    '100.0'
    """
    log_size = np.log(sizes)
    log_ratio = np.log(rising) - np.log(other)
    if log_ratio[-1] <= 0:
        return None
    not_larger = np.flatnonzero(log_ratio <= 0)
    if len(not_larger) == 0:
        return 0.0
    last = int(not_larger[-1])
    fraction = -log_ratio[last] / (log_ratio[last + 1] - log_ratio[last])
    return float(np.exp(log_size[last] + fraction * (log_size[last + 1] - log_size[last])))


def _require(sizes: Sequence[float], values: Sequence[float]) -> None:
    if len(sizes) != len(values) or len(set(sizes)) < 2:
        raise ValueError(f"a slope needs two different sizes and a value for each, got {list(sizes)}, {list(values)}")
