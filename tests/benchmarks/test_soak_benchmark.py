from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmark reads /proc")

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"


@pytest.mark.slow
def test_a_short_soak_gives_equal_outputs_and_memory(micro_model: Path) -> None:
    options = ["--minutes", "0.15", "--every", "4.5", "--lines", "4", "--precision", "fp32", "--json"]
    outcome = subprocess.run(
        [sys.executable, SOAK, micro_model, *options], capture_output=True, text=True, timeout=150, check=True
    )
    figures = json.loads(outcome.stdout)
    for name in ("translator", "command"):
        assert figures[name]["lines"] >= 4
        assert figures[name]["different_outputs"] == 0
        assert len(figures[name]["resident_mb"]) == 2
        assert figures[name]["resident_mb"][-1] > 10
