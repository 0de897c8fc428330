"""``benchmarks/first_words.py`` on the smaller of its models."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "first_words.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="an installed package has no benchmarks")


@pytest.mark.slow
def test_every_program_is_measured() -> None:
    command = [sys.executable, SCRIPT, "--rounds", "1", "--models", "demo", "--json"]
    result = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    programs = result["programs"]
    translated = ["translate demo", "translate demo, torch", "load demo"]
    assert list(programs) == ["import torch", *translated, "help", "version", "score"]
    for values in programs.values():
        assert 0 < values["lowest"] == values["wall_s"] == values["highest"]
        beyond_torch_s = values["wall_s"] - programs["import torch"]["wall_s"]
        assert values["beyond_torch_s"] == pytest.approx(beyond_torch_s, abs=0.0011)
    assert {"python", "versions", "cpu"} <= result["machine"].keys()
