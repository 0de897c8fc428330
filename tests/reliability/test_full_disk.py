"""A full disk: one clear line, exit code 1, and the run resumes from the previous checkpoint."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from said import says
from transduce.training import checkpoint_folders, read_tensors

pytestmark = pytest.mark.reliability

SETTINGS = [
    part
    for setting in ("training.max_updates=15", "training.checkpoint_every_updates=5", "search.beam_size=1")
    for part in ("--set", setting)
]


def train(recipe: Path, run: Path, *, limit: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "transduce",
        "train",
        recipe,
        *(["--resume"] if (run / "run.json").exists() else []),
        "--out",
        run,
        "--device",
        "cpu",
        *SETTINGS,
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=120, preexec_fn=limit, env=environment
    )


def assert_refused(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: "), done.stderr


def assert_same_model(run: Path, expected: Path) -> None:
    tensors = read_tensors(expected / "model" / "model.safetensors")
    for name, tensor in read_tensors(run / "model" / "model.safetensors").items():
        assert torch.equal(tensor, tensors[name])


@pytest.fixture(scope="module")
def whole(micro_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that had space."""
    run = tmp_path_factory.mktemp("whole") / "run"
    assert train(micro_recipe, run).returncode == 0
    return run


def test_files_that_may_not_grow(micro_recipe: Path, whole: Path, tmp_path: Path) -> None:
    """A file size limit between the size of the weights and that of the moments."""
    run = tmp_path / "run"
    sizes = {path.name: path.stat().st_size for path in checkpoint_folders(whole / "checkpoints")[-1].iterdir()}
    limit = (sizes["model.safetensors"] + sizes["optimizer.safetensors"]) // 2
    refused = train(micro_recipe, run, limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert_refused(refused)
    assert says(refused.stderr.splitlines()[-1], "update-00000005", "File too large")
    assert not checkpoint_folders(run / "checkpoints")
    done = train(micro_recipe, run)
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


def test_a_disk_that_is_full(small_disk: Callable[[int], Path], micro_recipe: Path, whole: Path) -> None:
    """Space for the text and one checkpoint, and for two only after something is removed."""
    size = {name: sum(path.stat().st_size for path in (whole / name).rglob("*")) for name in ("store", "checkpoints")}
    one_checkpoint = size["checkpoints"] // len(checkpoint_folders(whole / "checkpoints"))
    ballast = 4 * one_checkpoint
    disk = small_disk(2 * size["store"] + int(1.5 * one_checkpoint) + ballast + 200_000)
    run = disk / "run"
    (disk / "ballast").write_bytes(bytes(ballast))
    refused = train(micro_recipe, run)
    assert_refused(refused)
    assert "No space left on device" in refused.stderr.splitlines()[-1]
    kept = [path.name for path in checkpoint_folders(run / "checkpoints")]
    assert kept
    again = train(micro_recipe, run)
    assert_refused(again)
    assert [path.name for path in checkpoint_folders(run / "checkpoints")] == kept
    (disk / "ballast").unlink()
    done = train(micro_recipe, run)
    assert done.returncode == 0, done.stderr
    assert says(done.stderr, kept[-1])
    assert_same_model(run, whole)


def test_no_room_for_a_batch_that_is_not_finite(micro_recipe: Path, tmp_path: Path) -> None:
    """Problems of the run are reported nevertheless."""
    arguments = ["train", str(micro_recipe), "--out", str(tmp_path / "run"), "--device", "cpu"]
    store = tmp_path / "store"
    prepared = [sys.executable, "-m", "transduce", "prepare", str(micro_recipe), "--out", str(store)]
    assert subprocess.run(prepared, capture_output=True, check=False).returncode == 0
    command = [*arguments, "--store", str(store), "--set", "training.lr_factor=1e38"]
    done = subprocess.run(
        [sys.executable, "-m", "transduce", *command],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert_refused(done)


def test_a_model_folder_that_does_not_fit(micro_run: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "transduce", "average", str(micro_run), "--out", str(tmp_path / "model")]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
    )
    assert_refused(done)
    assert "File too large" in done.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())
