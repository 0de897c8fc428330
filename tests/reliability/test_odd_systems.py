"""Unusual systems: folders of other users, disks without locks, clocks that run backwards, dead processes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from forks import Forks
from said import says
from transduce.corpora import parallel_text
from transduce.model.weights_file import read_tensors
from transduce.training import checkpoint_folders

pytestmark = pytest.mark.reliability

NOBODY = 65534
TIMED = ("elapsed_s", "tgt_tokens_per_s")

# Another user of this process: all is imported before, since an interpreter in root's home can be read by root alone.
AS_NOBODY = f"""
import importlib, os, sys
for name in ("torch._dynamo", "torch.utils.tensorboard", "transduce.runs", "transduce.diagnostics",
             "transduce.cli.verbs", "transduce.cli.progress", "encodings.utf_8_sig"):
    importlib.import_module(name)
sys.modules["transduce.cli.verbs"].make_app()
os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
from transduce.cli.main import run
sys.exit(run(sys.argv[1:]))
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def _as_nobody(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent"}
    command = [sys.executable, "-c", AS_NOBODY, *map(str, arguments)]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=120, env=environment, check=False
    )


def _require_refusal(done: subprocess.CompletedProcess[str], path: str) -> None:
    assert done.returncode == 1, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert "Permission denied" in errors[0]
    assert path in errors[0]
    assert "Traceback" not in done.stderr


@pytest.fixture
def roots_run(micro_run: Path, micro_recipe: Path, tmp_path: Path) -> Path:
    """A copy of a run that everyone may read and only root may write."""
    for folder in (tmp_path, *tmp_path.parents):  # pytest closes its own
        if not folder.stat().st_mode & 0o001 and folder.owner() == "root" and "pytest-of" in str(folder):
            folder.chmod(0o755)
    run = tmp_path / "run"
    shutil.copytree(micro_run, run)
    shutil.copy(micro_recipe, tmp_path / "micro.toml")
    for path in (run, *run.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (tmp_path / "micro.toml").chmod(0o644)
    return run


@needs_root
@pytest.mark.slow
def test_a_run_of_another_user_can_be_read(roots_run: Path) -> None:
    before = sorted(roots_run.rglob("*"))
    translated = _as_nobody("translate", roots_run / "model", stdin="The dog sleeps.\n")
    assert (translated.returncode, translated.stdout.count("\n")) == (0, 1), translated.stderr
    text = roots_run.parent / "text"
    text.write_text("The dog sleeps.\n")
    text.chmod(0o644)
    evaluated = _as_nobody("evaluate", roots_run / "model", "--src", text, "--ref", text)
    assert evaluated.returncode == 0, evaluated.stderr
    examined = _as_nobody("doctor", roots_run)
    assert says(examined.stdout, "no problem")
    assert sorted(roots_run.rglob("*")) == before


@needs_root
@pytest.mark.slow
def test_a_folder_of_another_user_is_refused_in_one_line(roots_run: Path) -> None:
    recipe, closed = roots_run.parent / "micro.toml", roots_run.parent / "closed"
    closed.mkdir(mode=0o755)
    for out in (roots_run, closed):
        _require_refusal(_as_nobody("average", roots_run, "--out", out / "new"), "new cannot be written")
        _require_refusal(_as_nobody("prepare", recipe, "--out", out / "new"), "new cannot be written")
        _require_refusal(_as_nobody("train", recipe, "--out", out / "new"), "new")
    _require_refusal(_as_nobody("train", "--resume", "--out", roots_run), str(roots_run))
    assert not any(closed.iterdir())


@needs_root
@pytest.mark.slow
@pytest.mark.parametrize("name", ["run.json", "model/model.safetensors", "lock.json"])
def test_a_file_of_another_user_is_refused_in_one_line(name: str, roots_run: Path) -> None:
    for path in (roots_run, *roots_run.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    (roots_run / name).touch()
    os.chown(roots_run / name, 0, 0)
    (roots_run / name).chmod(0o600)
    if name.startswith("model/"):
        _require_refusal(_as_nobody("translate", roots_run / "model", stdin="The dog sleeps.\n"), name)
    else:
        _require_refusal(_as_nobody("train", "--resume", "--out", roots_run), name)


# A clock that runs backwards, fifty times as fast as it should run forwards, and began a year ago.
CLOCK_SET_BACK = """
import time
_clock, _begin = time.time, time.time()
time.time = lambda: _begin - 50 * (_clock() - _begin) - 400 * 86400
"""


@pytest.mark.slow
def test_a_clock_that_goes_back(micro_recipe: Path, micro_run: Path, tmp_path: Path) -> None:
    as_many = "".join(
        f"import transduce.corpora.parallel_text as text; text.{name} = {getattr(parallel_text, name)}\n"
        for name in ("GRAMMAR_DEV_PAIRS", "GRAMMAR_TEST_PAIRS")
    )
    (tmp_path / "sitecustomize.py").write_text(CLOCK_SET_BACK + as_many)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    shown = subprocess.run(
        [sys.executable, "-c", "import time; a = time.time(); time.sleep(0.01); print(time.time() < a)"],
        capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    if shown.stdout != "True\n":
        pytest.skip("this interpreter has a sitecustomize of its own before ours")
    command = [sys.executable, "-m", "transduce", "train", str(micro_recipe), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert all(value >= 0 for record in _records(tmp_path / "run") for name, value in record if name in TIMED)
    assert _same(tmp_path / "run", micro_run)


def _records(run: Path) -> list[list[tuple[str, Any]]]:
    return [list(json.loads(line).items()) for line in (run / "metrics.jsonl").read_text().splitlines()]


def _same(run: Path, other: Path) -> bool:
    """Return whether two runs have the same newest weights and moments, and the same records except times."""
    tensors = [
        {**read_tensors(newest / "model.safetensors"), **read_tensors(newest / "optimizer.safetensors")}
        for newest in (checkpoint_folders(each / "checkpoints")[-1] for each in (run, other))
    ]
    records = [
        [[item for item in record if item[0] not in TIMED] for record in _records(each)] for each in (run, other)
    ]
    same_tensors = all(torch.equal(tensor, tensors[1][name]) for name, tensor in tensors[0].items())
    return same_tensors and tensors[0].keys() == tensors[1].keys() and records[0] == records[1]


def test_files_of_the_future(forks: Forks, micro_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(micro_run, run)
    for path in run.rglob("*"):
        os.utime(path, (4e9, 4e9))
    done = forks.run("train", "--resume", "--out", run)
    assert done.returncode == 0, done.stderr
    assert _same(run, micro_run)


# One of two processes dies


def _trainer(out: Path, recipe: Path) -> list[str]:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "transduce"]
    arguments = ["--resume"] if (out / "run.json").exists() else [str(recipe)]
    return [sys.executable, *launcher, "train", *arguments, "--out", str(out), "--shard"]


def _workers(launcher: int) -> list[int]:
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return [int(child) for child in children if b"transduce" in Path(f"/proc/{child}/cmdline").read_bytes()]


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_sharded_run_of_which_one_process_is_killed(victim: int, micro_recipe: Path, tmp_path: Path) -> None:
    """During updates and checkpoints (written after each update): the other process ends, and the run resumes."""
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(micro_recipe.read_text().replace("checkpoint_every_updates = 10", "checkpoint_every_updates = 1"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    undisturbed, out, log = tmp_path / "undisturbed", tmp_path / "run", tmp_path / "log"
    subprocess.run(_trainer(undisturbed, recipe), capture_output=True, timeout=240, env=environment, check=True)
    draw = random.Random(victim)
    n_killed = 0
    for until_update in (2, 9, 17):
        with log.open("w") as words:
            launcher = subprocess.Popen(_trainer(out, recipe), stdout=words, stderr=words, env=environment)
            while launcher.poll() is None and not (out / "checkpoints" / f"update-{until_update:08}").exists():
                time.sleep(0.002)
            workers = _workers(launcher.pid) if launcher.poll() is None else []
            if len(workers) == 2:
                time.sleep(draw.uniform(0, 0.1))
                os.kill(workers[victim], signal.SIGKILL)
                n_killed += 1
            began = time.monotonic()
            launcher.wait(timeout=60)
        assert launcher.returncode != 0, log.read_text()
        assert time.monotonic() - began < 60
        assert "src/transduce/" not in log.read_text(), "torchrun has a traceback of its own, the run has none"
    assert n_killed == 3
    subprocess.run(_trainer(out, recipe), capture_output=True, timeout=240, env=environment, check=True)
    assert _same(out, undisturbed)
