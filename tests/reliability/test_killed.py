"""A run killed at any moment resumes from its last complete checkpoint and ends like an undisturbed one."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch

from forks import Forks
from run_records import records
from said import says
from transduce.corpora import generate_pairs
from transduce.errors import CheckpointError
from transduce.model.weights_file import read_tensors
from transduce.training import checkpoint_folders
from transduce.training.checkpoint import verify_checkpoint

pytestmark = pytest.mark.reliability

SEED = 20171206
RECIPE = """
[model]
n_encoder_layers = 1
n_decoder_layers = 1
d_model = 32
d_ff = 48
n_heads = 4
d_k = 8
d_v = 8
[data]
corpus = "files"
train_tsv = "{folder}/train.tsv"
dev_tsv = "{folder}/dev.tsv"
vocab_size = 400
[training]
max_updates = 60
max_tokens_per_batch = 400
warmup_steps = 10
checkpoint_every_updates = 2
validate_every_updates = 7
log_every_updates = 3
keep_checkpoints = 3
average_last = 3
[search]
beam_size = 2
max_extra_tokens = 3
"""


def last_complete(run: Path) -> int:
    """Return the update of the newest usable checkpoint; 0 if there is none."""
    for path in checkpoint_folders(run / "checkpoints")[::-1]:
        try:
            verify_checkpoint(path)
        except CheckpointError:
            continue
        return int(path.name.removeprefix("update-"))
    return 0


def assert_same_end(run: Path, undisturbed: Path) -> None:
    ours, expected = (checkpoint_folders(folder / "checkpoints") for folder in (run, undisturbed))
    assert [path.name for path in ours] == [path.name for path in expected]
    for name in ("model.safetensors", "optimizer.safetensors"):
        tensors = read_tensors(expected[-1] / name)
        for key, tensor in read_tensors(ours[-1] / name).items():
            assert torch.equal(tensor, tensors[key]), key
    model = read_tensors(undisturbed / "model" / "model.safetensors")
    for key, tensor in read_tensors(run / "model" / "model.safetensors").items():
        assert torch.equal(tensor, model[key]), key
    assert records(run) == records(undisturbed)


def survive(forks: Forks, folder: Path, n_kills: int) -> None:
    """Kill runs at random moments, resume each, and compare the results with an undisturbed run."""
    recipe = folder / "recipe.toml"
    recipe.write_text(RECIPE.format(folder=folder), encoding="utf-8")
    for name, n_pairs in (("train", 300), ("dev", 6)):
        lines = (f"{pair.en}\t{pair.de}\n" for pair in generate_pairs(name, n_pairs=n_pairs, seed=1))
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    assert forks.run("--version").returncode == 0  # the server has begun
    begin = time.monotonic()
    whole = forks.run("train", recipe, "--out", folder / "whole", "--device", "cpu")
    assert whole.returncode == 0, whole.stderr
    whole_s = time.monotonic() - begin
    draw = random.Random(SEED)
    killed = ended = 0
    while killed < n_kills or (folder / f"run-{ended}").exists():
        run = folder / f"run-{ended}"
        before = last_complete(run)
        resume = ["--resume"] if (run / "run.json").exists() else []
        process = forks.start("train", recipe, *resume, "--out", run, "--device", "cpu")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(draw.uniform(0, 0.6 * whole_s) if killed < n_kills else 120.0)
        process.kill()
        _, told = process.communicate()
        assert "Traceback" not in told
        if before and "resumed" in told:
            assert says(told, "resumed", f"update-{before:08d}")
        if process.returncode == 0:
            assert_same_end(run, folder / "whole")
            ended += 1
        else:
            assert process.returncode == -signal.SIGKILL, f"it ended by itself, {process.returncode}: {told}"
            killed += 1
            assert last_complete(run) >= before
    print(f"{killed} kills, {ended} runs, each as the undisturbed one")


@pytest.mark.merge
def test_a_run_survives_being_killed(forks: Forks, tmp_path: Path) -> None:
    survive(forks, tmp_path, n_kills=4)


@pytest.mark.slow
def test_a_run_survives_being_killed_at_fifty_moments(forks: Forks, tmp_path: Path) -> None:
    survive(forks, tmp_path, n_kills=50)
