"""The benchmarks of identity and of long sequences, on small models and short sequences."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
import torch

from transduce.inference import Translator
from transduce.model import for_inference

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.exists(), reason="an installed package has no benchmarks")
LINES = ["The dog sleeps.", "The woman sees the old cat.", "A child hears the river."]


@pytest.mark.merge
def test_identity_is_counted(micro_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import identity

    found = identity.compared(micro_model, micro_model, LINES, "float64", n_drafted=3)
    assert (found["sentences"], found["different"], found["beyond"], found["largest_gap"]) == (3, 0, 0, 0.0)
    assert found["tokens_per_pass"] >= 1
    assert "| float64 | 3 | 100.00% | 0 | 0 | 0.0e+00 |" in identity.as_text({"float64": found})


@torch.no_grad()
def test_the_gap_is_that_of_the_first_difference(micro_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import identity

    model = Translator.load(micro_model).model
    source, one, other = [7, 8, 9], [10, 11, 12, 2], [10, 13, 12, 2]
    log_probs = model.logits(model(torch.tensor([[7, 8, 9, 2]]), torch.tensor([[1, 10]])))[-1].double().log_softmax(0)
    expected = abs(float(log_probs[11] - log_probs[13]))
    assert identity.gap(for_inference(model, "fp32"), source, one, other) == pytest.approx(expected, abs=1e-5)


def test_growth_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import long_sequences

    arguments = Namespace(layers=1, d_model=16, vocab_size=30, r=5, rounds=1)
    for setting in long_sequences.SETTINGS:
        measured = long_sequences.measured(arguments, setting, "restricted", 40)
        assert measured["time_s"] > 0
    rows = [
        {"setting": "training", "attention": "full", "n": n, "time_s": n**2, "memory_mb": 3 * n, "tokens_per_s": 1 / n}
        for n in (8, 16, 32, 10**6)
    ]
    found = long_sequences.exponents(rows)
    assert found["training, full"] == pytest.approx({"time_exponent": 2.0, "memory_exponent": 1.0})
    text = long_sequences.as_text({"rows": rows, "exponents": found})
    assert "time n^2.00, memory n^1.00" in text
