from __future__ import annotations

import pytest
import torch

from said import naming
from transduce.config import SearchConfig
from transduce.search import NO_PENALTY, LengthPenalty


def test_worked_values() -> None:
    assert LengthPenalty(0.6)(1.0) == 1.0
    assert LengthPenalty(1.0)(7.0) == 2.0
    assert LengthPenalty(2.0)(7.0) == 4.0
    assert LengthPenalty(0.5)(19.0) == 2.0


def test_alpha_zero_leaves_log_probabilities_alone() -> None:
    assert {NO_PENALTY(float(n)) for n in range(1, 300)} == {1.0}


def test_tensors_and_floats_agree() -> None:
    lengths, penalty = torch.arange(1, 60, dtype=torch.float64), LengthPenalty.of(SearchConfig(alpha=0.6))
    assert penalty(lengths).tolist() == pytest.approx(list(map(penalty, lengths.tolist())), abs=1e-12)


def test_a_negative_alpha_is_refused() -> None:
    with pytest.raises(ValueError, match=naming("alpha", 0, "-0.5")):
        LengthPenalty(-0.5)
