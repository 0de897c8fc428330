"""``benchmarks/train.py`` on a model of no use, with peers that need nothing but torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "train.py"
PEERS = ["torch.nn", "torch.nn-tuned"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SCRIPT.exists(), reason="an installed package has no benchmarks"),
]


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    arguments = ["--size", "micro", "--rounds", "2", "--threads", "1", "--precision", "fp32", "--json"]
    command = [sys.executable, SCRIPT, *arguments, "--systems", "transduce", *PEERS]
    values: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return values


def test_every_system_is_measured(result: dict[str, Any]) -> None:
    systems = result["fp32"]["systems"]
    assert set(systems) == {"transduce", *PEERS}
    for values in systems.values():
        lowest, highest = values["range"]
        assert 0 < lowest <= values["tokens_per_s"] <= highest
        assert values["peak_memory_mb"] > 10


def test_systems_are_of_one_size(result: dict[str, Any]) -> None:
    # The peer has 4 biases of 32 in each of 3 attentions, and 2 more norms of 64.
    systems = result["fp32"]["systems"]
    assert systems["torch.nn"]["parameters"] - systems["transduce"]["parameters"] == 3 * 4 * 32 + 2 * 64


def test_ratios_are_of_medians(result: dict[str, Any]) -> None:
    systems = result["fp32"]["systems"]
    ours, peer, tuned = (systems[name] for name in ("transduce", *PEERS))
    assert result["ratio_to_best_peer"] == pytest.approx(ours["tokens_per_s"] / peer["tokens_per_s"], abs=0.01)
    assert result["ratio_to_best_tuned_peer"] == pytest.approx(ours["tokens_per_s"] / tuned["tokens_per_s"], abs=0.01)
    memory = ours["peak_memory_mb"] / tuned["peak_memory_mb"]
    assert result["fp32"]["memory_ratio_to_best_tuned_peer"] == pytest.approx(memory, abs=0.01)


def test_the_share_of_the_machine_follows_from_the_rates(result: dict[str, Any]) -> None:
    flops_per_s = result["fp32"]["systems"]["transduce"]["tokens_per_s"] * result["flops_per_token"]
    share = flops_per_s / (result["matrix_rate"]["fp32"]["gflops_per_s"] * 1e9)
    assert result["fp32"]["systems"]["transduce"]["mfu"] == pytest.approx(share, abs=0.002)
