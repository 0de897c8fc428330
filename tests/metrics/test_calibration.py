"""Reliability and expected calibration error against a worked example and a version in plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from said import naming
from transduce.metrics.calibration import expected_calibration_error, overconfidence, reliability_bins


def test_an_example_computed_by_hand() -> None:
    # Above 0.8: 0.95 and 0.85 and 0.9, two of three right: | 2/3 - 0.9 | = 0.23333. Up to 0.4, above 0.2: 0.3 and 0.4,
    # one of two right: | 0.5 - 0.35 | = 0.15. ECE = (3 * 0.23333 + 2 * 0.15) / 5 = 0.2; overconfidence (0.7 - 0.3) / 5.
    confidence = np.array([0.95, 0.3, 0.85, 0.4, 0.9])
    is_right = np.array([True, False, False, True, True])
    bins = reliability_bins(confidence, is_right, n_bins=5)
    assert [each.n for each in bins] == [0, 2, 0, 0, 3]
    assert bins[1].confidence == pytest.approx(0.35)
    assert bins[1].accuracy == 0.5
    assert bins[0].confidence is None
    assert bins[0].accuracy is None
    assert expected_calibration_error(bins) == pytest.approx(0.2)
    assert overconfidence(bins) == pytest.approx(0.08)


def test_calibrated_predictions_have_no_error() -> None:
    # The 100 examples of the notes: of those with 0.9, 90 are right; of those with 0.6, 60.
    confidence = np.repeat([0.9, 0.6], 100)
    is_right = np.concatenate([np.arange(100) < 90, np.arange(100) < 60])
    assert expected_calibration_error(reliability_bins(confidence, is_right)) == pytest.approx(0, abs=1e-12)
    # Confidence 0.9 at accuracy 0.6, as in the notes' overconfident model.
    overconfident = reliability_bins(np.full(100, 0.9), np.arange(100) < 60)
    assert expected_calibration_error(overconfident) == pytest.approx(0.3)
    assert overconfidence(overconfident) == pytest.approx(0.3)


def test_a_confidence_on_an_edge_belongs_to_the_bin_below() -> None:
    # In floating point 0.7 * 10 is above 7 and 0.3 is 3 / 10: no product with the number of bins may decide.
    for tenths in range(1, 11):
        bins = reliability_bins(np.array([tenths / 10]), np.array([True]), n_bins=10)
        assert bins[tenths - 1].n == 1


@given(
    st.lists(st.tuples(st.floats(1e-6, 1.0), st.booleans()), min_size=1, max_size=60),
    st.integers(1, 20),
)
def test_reliability_matches_plain_loops(predictions: list[tuple[float, bool]], n_bins: int) -> None:
    confidence = np.array([each for each, _ in predictions])
    is_right = np.array([each for _, each in predictions])
    error = 0.0
    for n in range(n_bins):
        here = [(p, hit) for p, hit in predictions if n / n_bins < p <= (n + 1) / n_bins]
        if here:
            error += abs(sum(hit for _, hit in here) - sum(p for p, _ in here)) / len(predictions)
    bins = reliability_bins(confidence, is_right, n_bins=n_bins)
    assert sum(each.n for each in bins) == len(predictions)
    assert expected_calibration_error(bins) == pytest.approx(error, abs=1e-9)
    assert overconfidence(bins) == pytest.approx(confidence.mean() - is_right.mean(), abs=1e-9)


@pytest.mark.parametrize("confidence", [[], [0.5, 0.0], [1.1], [float("nan")]])
def test_invalid_confidences_are_refused(confidence: list[float]) -> None:
    with pytest.raises(ValueError, match=naming(0, 1)):
        reliability_bins(np.array(confidence), np.zeros(len(confidence), dtype=bool))
