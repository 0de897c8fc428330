"""Calibration: reliability bins and expected calibration error (Guo et al., 2017).

Shapes: N predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ReliabilityBin", "expected_calibration_error", "overconfidence", "reliability_bins"]


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Predictions whose confidence is above ``low`` and at most ``high``."""

    low: float
    high: float
    n: int
    confidence: float | None  # mean; None if the bin is empty
    accuracy: float | None  # share of right predictions


def reliability_bins(
    confidence_N: NDArray[np.floating], is_right_N: NDArray[np.bool_], *, n_bins: int = 10
) -> tuple[ReliabilityBin, ...]:
    """Sort predictions into bins of equal width from 0 to 1.

    Raises ValueError if there is no prediction, or a confidence that is not above 0 and at most 1.

    >>> bins = reliability_bins(np.array([0.6, 0.8, 0.9]), np.array([True, False, True]), n_bins=2)
    >>> [(each.n, each.accuracy) for each in bins]
    [(0, None), (3, 0.6666666666666666)]
    """
    if not len(confidence_N) or not ((confidence_N > 0) & (confidence_N <= 1)).all():
        raise ValueError("a reliability diagram needs predictions, each with a confidence above 0 and at most 1")
    edges = [n / n_bins for n in range(n_bins + 1)]
    bin_N = np.searchsorted(edges[1:-1], confidence_N, side="left")
    bins = []
    for index in range(n_bins):
        is_in_bin_N = bin_N == index
        n = int(is_in_bin_N.sum())
        confidence, accuracy = (
            (float(confidence_N[is_in_bin_N].mean(dtype=np.float64)), float(is_right_N[is_in_bin_N].mean()))
            if n
            else (None, None)
        )
        bins.append(ReliabilityBin(edges[index], edges[index + 1], n, confidence, accuracy))
    return tuple(bins)


def expected_calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """Return the mean over predictions of | accuracy - confidence | of their bin.

    >>> bins = reliability_bins(np.array([0.6, 0.8, 0.9]), np.array([True, False, True]), n_bins=2)
    >>> f"{expected_calibration_error(bins):.4f}"  # | 2 / 3 - 2.3 / 3 |
    '0.1000'
    """
    return sum(each.n * abs(gap) for each, gap in _gaps(bins)) / sum(each.n for each in bins)


def overconfidence(bins: Sequence[ReliabilityBin]) -> float:
    """Return mean confidence minus accuracy over all predictions; below 0, the model is underconfident."""
    return sum(each.n * gap for each, gap in _gaps(bins)) / sum(each.n for each in bins)


def _gaps(bins: Sequence[ReliabilityBin]) -> list[tuple[ReliabilityBin, float]]:
    """Return confidence minus accuracy of each non-empty bin."""
    return [
        (each, each.confidence - each.accuracy)
        for each in bins
        if each.confidence is not None and each.accuracy is not None
    ]
