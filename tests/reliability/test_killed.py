"""A run killed at any moment resumes from its last complete checkpoint and ends like an undisturbed one."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from said import says
from transduce.corpora import generate_pairs
from transduce.errors import CheckpointError
from transduce.training import checkpoint_folders, read_tensors
from transduce.training.checkpoint import verify_checkpoint

pytestmark = pytest.mark.reliability

TIMED = ("elapsed_s", "tgt_tokens_per_s")
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


class Forks:
    """A process that forks commands quickly; see ``forks.py``."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        script = Path(__file__).with_name("forks.py")
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._server = subprocess.Popen([sys.executable, str(script)], env=environment, **pipes)

    def start(self, log: Path, *arguments: object) -> int:
        """Start a command; return its process id."""
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps([str(log), *map(str, arguments)]) + "\n")
        self._server.stdin.flush()
        return int(self._line())

    def wait(self, seconds: float = 120.0) -> int | None:
        """Return the exit status as of ``os.waitpid``; None while it runs."""
        assert self._server.stdout is not None
        ready, _, _ = select.select([self._server.stdout], [], [], seconds)
        return int(self._line()) if ready else None

    def _line(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline()

    def close(self) -> None:
        """End the server."""
        self._server.kill()
        self._server.communicate()


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    server = Forks()
    yield server
    server.close()


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
    assert records_in(run) == records_in(undisturbed)


def records_in(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key not in TIMED} for line in lines]


def survive(forks: Forks, folder: Path, n_kills: int) -> None:
    """Kill runs at random moments, resume each, and compare the results with an undisturbed run."""
    recipe = folder / "recipe.toml"
    recipe.write_text(RECIPE.format(folder=folder), encoding="utf-8")
    for name, n_pairs in (("train", 300), ("dev", 6)):
        lines = (f"{pair.en}\t{pair.de}\n" for pair in generate_pairs(name, n_pairs=n_pairs, seed=1))
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    forks.start(folder / "log", "--version")
    assert forks.wait() == 0  # the server has begun
    begin = time.monotonic()
    forks.start(folder / "log", "train", recipe, "--out", folder / "whole", "--device", "cpu")
    assert forks.wait() == 0, (folder / "log").read_text()
    whole_s = time.monotonic() - begin
    draw = random.Random(SEED)
    killed = ended = 0
    while killed < n_kills or (folder / f"run-{ended}").exists():
        run, log = folder / f"run-{ended}", folder / "log"
        before = last_complete(run)
        resume = ["--resume"] if (run / "run.json").exists() else []
        process = forks.start(log, "train", recipe, *resume, "--out", run, "--device", "cpu")
        status = forks.wait(draw.uniform(0, 0.6 * whole_s) if killed < n_kills else 120.0)
        if status is None:
            os.kill(process, signal.SIGKILL)
            status = forks.wait()
        told = log.read_text(encoding="utf-8")
        assert "Traceback" not in told
        if before and "resumed" in told:
            assert says(told, "resumed", f"update-{before:08d}")
        if status == 0:
            assert_same_end(run, folder / "whole")
            ended += 1
        else:
            assert status == signal.SIGKILL, f"it ended by itself, {status}: {told}"
            killed += 1
            assert last_complete(run) >= before
    print(f"{killed} kills, {ended} runs, each as the undisturbed one")


def test_a_run_survives_being_killed(forks: Forks, tmp_path: Path) -> None:
    survive(forks, tmp_path, n_kills=4)


@pytest.mark.slow
def test_a_run_survives_being_killed_at_fifty_moments(forks: Forks, tmp_path: Path) -> None:
    survive(forks, tmp_path, n_kills=50)
