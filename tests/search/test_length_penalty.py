from __future__ import annotations

import pytest
import torch

from transduce.search import length_penalty


def test_worked_values() -> None:
    assert length_penalty(1.0, alpha=0.6) == 1.0
    assert length_penalty(7.0, alpha=1.0) == 2.0
    assert length_penalty(7.0, alpha=2.0) == 4.0
    assert length_penalty(19.0, alpha=0.5) == 2.0


def test_alpha_zero_leaves_log_probabilities_alone() -> None:
    assert {length_penalty(float(n), alpha=0.0) for n in range(1, 300)} == {1.0}


def test_tensors_and_floats_agree() -> None:
    lengths = torch.arange(1, 60, dtype=torch.float64)
    expected = [length_penalty(n, alpha=0.6) for n in lengths.tolist()]
    assert length_penalty(lengths, alpha=0.6).tolist() == pytest.approx(expected, abs=1e-12)
