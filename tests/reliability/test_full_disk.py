"""A full disk: one clear line, exit code 1, and the run resumes from the previous checkpoint."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import torch

from forks import Forks
from said import says
from transduce.model.weights_file import read_tensors
from transduce.training import checkpoint_folders

pytestmark = [pytest.mark.reliability, pytest.mark.merge]

SETTINGS = [
    part
    for setting in ("training.max_updates=15", "training.checkpoint_every_updates=5", "search.beam_size=1")
    for part in ("--set", setting)
]


def train(forks: Forks, recipe: Path, run: Path, *, before: str = "") -> CompletedProcess[str]:
    resume = ["--resume"] if (run / "run.json").exists() else []
    return forks.run("train", recipe, *resume, "--out", run, "--device", "cpu", *SETTINGS, before=before)


def at_most(n_bytes: int) -> str:
    """No file may become larger."""
    return f"resource.setrlimit(resource.RLIMIT_FSIZE, ({n_bytes}, {n_bytes}))"


def assert_refused(done: CompletedProcess[str]) -> None:
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: "), done.stderr


def assert_same_model(run: Path, expected: Path) -> None:
    tensors = read_tensors(expected / "model" / "model.safetensors")
    for name, tensor in read_tensors(run / "model" / "model.safetensors").items():
        assert torch.equal(tensor, tensors[name])


@pytest.fixture(scope="module")
def whole(forks: Forks, micro_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that had space."""
    run = tmp_path_factory.mktemp("whole") / "run"
    assert train(forks, micro_recipe, run).returncode == 0
    return run


def test_files_that_may_not_grow(forks: Forks, micro_recipe: Path, whole: Path, tmp_path: Path) -> None:
    """A file size limit between the size of the weights and that of the moments."""
    run = tmp_path / "run"
    sizes = {path.name: path.stat().st_size for path in checkpoint_folders(whole / "checkpoints")[-1].iterdir()}
    limit = (sizes["model.safetensors"] + sizes["optimizer.safetensors"]) // 2
    refused = train(forks, micro_recipe, run, before=at_most(limit))
    assert_refused(refused)
    assert says(refused.stderr.splitlines()[-1], "update-00000005", "File too large")
    assert not checkpoint_folders(run / "checkpoints")
    done = train(forks, micro_recipe, run)
    assert done.returncode == 0, done.stderr
    assert_same_model(run, whole)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """A small disk, if mounting is permitted."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")

    def make(n_bytes: int) -> Path:
        done = subprocess.run([mount, "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", place], capture_output=True)
        if done.returncode:
            pytest.skip(f"no small disk can be mounted here: {done.stderr.decode()}")
        return place

    yield make
    subprocess.run(["umount", place], check=False)


def test_a_disk_that_is_full(forks: Forks, small_disk: Callable[[int], Path], micro_recipe: Path, whole: Path) -> None:
    """Space for the text and one checkpoint, and for two only after something is removed."""
    size = {name: sum(path.stat().st_size for path in (whole / name).rglob("*")) for name in ("store", "checkpoints")}
    one_checkpoint = size["checkpoints"] // len(checkpoint_folders(whole / "checkpoints"))
    ballast = 4 * one_checkpoint
    disk = small_disk(2 * size["store"] + int(1.5 * one_checkpoint) + ballast + 200_000)
    run = disk / "run"
    (disk / "ballast").write_bytes(bytes(ballast))
    refused = train(forks, micro_recipe, run)
    assert_refused(refused)
    assert "No space left on device" in refused.stderr.splitlines()[-1]
    kept = [path.name for path in checkpoint_folders(run / "checkpoints")]
    assert kept
    again = train(forks, micro_recipe, run)
    assert_refused(again)
    assert [path.name for path in checkpoint_folders(run / "checkpoints")] == kept
    (disk / "ballast").unlink()
    done = train(forks, micro_recipe, run)
    assert done.returncode == 0, done.stderr
    assert says(done.stderr, kept[-1])
    assert_same_model(run, whole)


def test_no_room_for_a_batch_that_is_not_finite(forks: Forks, micro_recipe: Path, tmp_path: Path) -> None:
    """Problems of the run are reported nevertheless."""
    store = tmp_path / "store"
    assert forks.run("prepare", micro_recipe, "--out", store).returncode == 0
    arguments = ["--out", tmp_path / "run", "--device", "cpu", "--store", store, "--set", "training.lr_factor=1e38"]
    assert_refused(forks.run("train", micro_recipe, *arguments, before=at_most(3000)))


def test_a_model_folder_that_does_not_fit(forks: Forks, micro_run: Path, tmp_path: Path) -> None:
    done = forks.run("average", micro_run, "--out", tmp_path / "model", before=at_most(20_000))
    assert_refused(done)
    assert "File too large" in done.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())
