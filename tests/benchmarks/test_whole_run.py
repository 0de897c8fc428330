"""``benchmarks/whole_run.py`` on a model of no use, for seconds, with a peer that needs nothing but torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "whole_run.py"
SYSTEMS = ["transduce", "torch.nn-tuned"]
MINUTES = 0.1

pytestmark = [
    pytest.mark.skipif(not SCRIPT.exists(), reason="an installed package has no benchmarks"),
    pytest.mark.slow,
]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, check=False, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("whole")


@pytest.fixture(scope="module")
def finished(folder: Path) -> subprocess.CompletedProcess[str]:
    return run(
        "--size", "micro", "--minutes", MINUTES, "--turn-minutes", 0.05, "--evaluate-minutes", 0.05,
        "--sample-seconds", 0.2, "--precision", "fp32", "--threads", 1, "--systems", *SYSTEMS, "eole",
        "--out", folder / "out.json", "--json",
    )  # fmt: skip


@pytest.fixture(scope="module")
def result(finished: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert finished.returncode == 0, finished.stderr
    values: dict[str, Any] = json.loads(finished.stdout)
    return values


def test_systems_train_for_the_same_time(result: dict[str, Any]) -> None:
    for name in SYSTEMS:
        values = result["systems"][name]
        assert values["own_s"] >= 60 * MINUTES
        assert values["tgt_tokens"] > values["updates"] > 0
        assert values["memory_mb"]["peak"] >= values["memory_mb"]["end"] > 10


def test_perplexity_is_of_the_same_tokens_and_falls(result: dict[str, Any]) -> None:
    assert result["dev_tokens"] > 0
    for name in SYSTEMS:
        (first_minute, first), (last_minute, last) = result["systems"][name]["dev_perplexity"]
        assert (first_minute, last_minute) == (0.05, 0.1)
        assert 300 > last > 1  # a model that knows nothing has the vocabulary's size, 300
        assert last < first


def test_ratios_follow_from_the_systems(result: dict[str, Any]) -> None:
    ours, peer = (result["systems"][name] for name in SYSTEMS)
    ratios = result["ratio_to_best_tuned_peer"]
    assert ratios["tgt_tokens"] == pytest.approx(ours["tgt_tokens"] / peer["tgt_tokens"], abs=0.001)
    assert ratios["memory_peak"] == pytest.approx(ours["memory_mb"]["peak"] / peer["memory_mb"]["peak"], abs=0.001)


def test_a_system_that_cannot_run_is_left_out_in_one_line(
    finished: subprocess.CompletedProcess[str], result: dict[str, Any]
) -> None:
    assert "eole is left out: --eole-python is not given\n" in finished.stderr
    assert result["systems"]["eole"]["error"] == "--eole-python is not given"


def test_what_was_measured_is_kept_after_each_turn(folder: Path, result: dict[str, Any]) -> None:
    assert json.loads((folder / "out.json").read_text())["systems"] == result["systems"]


def test_transduce_train_alone_is_sampled(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        'preset = "small"\n[model]\nn_encoder_layers = 1\nn_decoder_layers = 1\n'
        "d_model = 32\nd_ff = 64\nn_heads = 2\nd_k = 16\nd_v = 16\n"
        '[data]\ncorpus = "grammar"\nn_pairs = 300\nvocab_size = 300\n'
    )
    done = run(
        "--ours-only", "--recipe", recipe, "--set", "training.max_tokens_per_batch=300",
        "--minutes", 0.07, "--sample-seconds", 1, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    of_run = json.loads(done.stdout)["runs"]["c-library"]
    assert len(of_run["samples"]) == 5  # the start, and four seconds
    tokens = [sample[1] for sample in of_run["samples"]]
    assert tokens == sorted(tokens)
    assert tokens[-1] > 0
    for _, _, seconds, elapsed_s, _ in of_run["samples"][1:]:
        assert 0 < seconds <= elapsed_s * 1.01  # rates are of the training alone, or with validations
    assert of_run["memory_mb_peak"] >= of_run["memory_mb_end"] > 10
