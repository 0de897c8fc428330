"""The benchmark for GPUs runs, on a CPU and with a model that is too small to say anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


@pytest.mark.slow
def test_the_keys() -> None:
    arguments = ["--device", "cpu", "--sizes", "micro", "--minutes", "0.001", "--json"]
    run = subprocess.run([sys.executable, BENCHMARK, *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result["micro"]["training"]["eager"]["tokens_per_s"] > 0
    assert 0 < result["micro"]["training"]["eager"]["mfu"] < 1
    assert result["micro"]["decoding_batch256_beam4"]["tokens_per_s"] > 0
    assert result["machine"]["versions"]["torch"] == torch.__version__


@pytest.mark.slow
def test_the_script_runs_the_named_stages(tmp_path: Path) -> None:
    environment = os.environ | {"DEVICE": "cpu", "SIZES": "micro", "MINUTES": "0.001", "PYTHON": sys.executable}
    script = BENCHMARK.with_suffix(".sh")
    run = subprocess.run(
        ["bash", script, "base", "decoding"],
        env=environment | {"OUT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    training, decoding = (json.loads((tmp_path / f"{stage}.json").read_text()) for stage in ("base", "decoding"))
    assert training["micro"]["training"]["eager"]["peak_memory_mb"] > 10
    assert "decoding_batch256_beam4" not in training["micro"]
    assert decoding["micro"]["decoding_batch256_beam4"]["peak_memory_mb"] > 10


def test_the_script_refuses_an_unknown_stage(tmp_path: Path) -> None:
    run = subprocess.run(
        ["bash", BENCHMARK.with_suffix(".sh"), "tests", "bigger"],
        env=os.environ | {"OUT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert run.stderr == "gpu.sh: unknown stage bigger; known are: tests, base, big, decoding, paper, train\n"
