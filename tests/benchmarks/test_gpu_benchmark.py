"""The benchmark for GPUs runs, on a CPU and with a model that is too small to say anything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import torch

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


def test_the_keys() -> None:
    arguments = ["--device", "cpu", "--sizes", "micro", "--minutes", "0.001", "--json"]
    run = subprocess.run([sys.executable, BENCHMARK, *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result["micro"]["training"]["eager"]["tokens_per_s"] > 0
    assert 0 < result["micro"]["training"]["eager"]["mfu"] < 1
    assert result["micro"]["decoding_batch256_beam4"]["tokens_per_s"] > 0
    assert result["machine"]["versions"]["torch"] == torch.__version__
