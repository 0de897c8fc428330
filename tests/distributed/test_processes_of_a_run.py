"""Two processes on one machine, with gloo: same results as one, exact resume, no hangs.

They are forked, with the variables that torchrun sets; the long tests of signals start torchrun itself.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from forks import Forks
from run_records import records
from said import says
from transduce.model.weights_file import read_tensors
from transduce.runs.lock import lock_holder
from transduce.training import checkpoint_folders, read_state
from transduce.training.distributed import assign_shards

pytestmark = [pytest.mark.reliability, pytest.mark.merge]

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
WORKER = Path(__file__).with_name("worker.py")
Job = list[dict[str, Any]]


def run_job(forks: Forks, job: Job, folder: Path, *, n_processes: int) -> tuple[list[int], str]:
    """Run the tasks of a job in ``n_processes``; return the exit codes, and what all of them wrote to stderr."""
    path = folder / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    group = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "WORLD_SIZE": n_processes,
        "LOCAL_WORLD_SIZE": n_processes,
    }
    program = f"import runpy, sys; sys.argv = ['', {str(path)!r}]; runpy.run_path({str(WORKER)!r}, run_name='__main__')"
    with (folder / "log").open("w+", encoding="utf-8") as log:
        processes = [
            forks.start(
                program=program, stdout=log, stderr=log,
                env={name: str(value) for name, value in {**group, "RANK": rank, "LOCAL_RANK": rank}.items()},
            )
            for rank in range(n_processes)
        ]  # fmt: skip
        try:
            codes = [process.wait(240) for process in processes]
        finally:
            for process in processes:
                process.kill()
        log.seek(0)
        return codes, log.read()


def do_job(forks: Forks, job: Job, folder: Path, *, n_processes: int) -> None:
    codes, log = run_job(forks, job, folder, n_processes=n_processes)
    assert codes == [0] * n_processes, log


def newest_tensors(out: Path) -> dict[str, torch.Tensor]:
    newest = checkpoint_folders(out / "checkpoints")[-1]
    return {**read_tensors(newest / "model.safetensors"), **read_tensors(newest / "optimizer.safetensors")}


def assert_same_run(ours: Path, expected: Path) -> None:
    tensors = newest_tensors(expected)
    for name, tensor in newest_tensors(ours).items():
        assert torch.equal(tensor, tensors[name]), name
    assert records(ours) == records(expected)


@pytest.mark.parametrize("n_batches", [1, 2, 3, 4, 6, 7])
@pytest.mark.parametrize("n_processes", [1, 2, 3, 8])
def test_every_part_of_every_batch_is_dealt_once(n_batches: int, n_processes: int) -> None:
    dealt = [list(assign_shards(n_batches, n_processes, rank)) for rank in range(n_processes)]
    assert len({len(own) for own in dealt}) == 1
    (n_parts,) = {n_parts for own in dealt for _, _, n_parts in own}
    parts = sorted((index, part) for own in dealt for index, part, _ in own)
    assert parts == [(index, part) for index in range(n_batches) for part in range(n_parts)]
    if n_batches % n_processes == 0:
        assert n_parts == 1


VARIANTS: dict[str, dict[str, Any]] = {
    "parts": {},
    "parts-of-three": {"n_accumulate": 3},
    "whole-batches": {"n_accumulate": 2, "validation_bleu": False},
    "clipped": {"n_accumulate": 3, "clip_norm": 0.01},
}


@pytest.mark.parametrize(
    "names", [["clipped"], pytest.param(list(VARIANTS), marks=pytest.mark.merge)], ids=["one", "all"]
)
def test_two_processes_equal_one(forks: Forks, micro_run: Path, tmp_path: Path, names: list[str]) -> None:
    """Split and whole batches, DDP and FSDP: the same weights and records up to rounding."""
    (tmp_path / "agreed").mkdir()

    def job(n_processes: int, **options: Any) -> Job:
        return [
            {"task": "train", "store": str(micro_run / "store"), "out": str(tmp_path / f"{n_processes}-{name}")}
            | VARIANTS[name]
            | options
            for name in names
        ]

    do_job(forks, job(1), tmp_path, n_processes=1)
    sharded = [{**task, "sharded": True, "out": f"{task['out']}-sharded"} for task in job(2)]
    do_job(forks, [*job(2), *sharded, {"task": "agree", "out": str(tmp_path / "agreed")}], tmp_path, n_processes=2)
    assert len(list((tmp_path / "agreed").iterdir())) == 2
    for name in names:
        one = tmp_path / f"1-{name}"
        for two in (tmp_path / f"2-{name}", tmp_path / f"2-{name}-sharded"):
            expected = newest_tensors(one)
            for key, tensor in newest_tensors(two).items():
                torch.testing.assert_close(tensor, expected[key], rtol=0, atol=1e-10, msg=f"{two.name} {key}")
            for record, wanted in zip(records(two), records(one), strict=True):
                assert record.keys() == wanted.keys()
                for key, value in wanted.items():
                    assert record[key] == (pytest.approx(value, rel=1e-8) if isinstance(value, float) else value), key


def resume_tasks(store: Path, folder: Path, name: str, cuts: list[dict[str, Any]], **settings: Any) -> Job:
    """An uninterrupted run, and one that is interrupted at each of the ``cuts`` and resumed."""
    common = {"task": "train", "store": str(store), "p_drop": 0.2, "n_accumulate": 3, "double": False, **settings}
    whole = [{**common, "out": str(folder / f"{name}-whole")}]
    for number, cut in enumerate(cuts):
        out = str(folder / f"{name}-cut-{number}")
        whole += [{**common, "out": out, **cut}, {**common, "out": out}]
    return whole


def assert_resumed_exactly(folder: Path, name: str, n_cuts: int) -> None:
    for number in range(n_cuts):
        assert_same_run(folder / f"{name}-cut-{number}", folder / f"{name}-whole")


@pytest.mark.merge
def test_experts_are_divided_among_processes(forks: Forks, micro_run: Path, tmp_path: Path) -> None:
    """Whole batches per rank, since expert balance is defined per batch; gates round to fp32."""
    task = {"task": "train", "store": str(micro_run / "store"), "n_experts": 4, "n_accumulate": 2}
    do_job(forks, [task | {"out": str(tmp_path / "one")}], tmp_path, n_processes=1)
    do_job(forks, [task | {"out": str(tmp_path / "two"), "sharded": True}], tmp_path, n_processes=2)
    expected = newest_tensors(tmp_path / "one")
    assert any("experts.3" in key for key in expected)
    for key, tensor in newest_tensors(tmp_path / "two").items():
        torch.testing.assert_close(tensor, expected[key], rtol=1e-5, atol=1e-6, msg=key)


@pytest.mark.merge
def test_two_processes_resume_exactly(forks: Forks, micro_run: Path, tmp_path: Path) -> None:
    """Only one process is interrupted, after an update and within a validation."""
    cuts = [{"stop_at": 5, "stopped_rank": 1}, {"stop_at": 3, "stop_in_validation": True, "stopped_rank": 1}]
    do_job(forks, resume_tasks(micro_run / "store", tmp_path, "fp32", cuts), tmp_path, n_processes=2)
    assert_resumed_exactly(tmp_path, "fp32", len(cuts))


@pytest.mark.slow
@pytest.mark.parametrize("n_processes", [1, 2])
def test_any_cut_resumes_exactly(forks: Forks, micro_run: Path, tmp_path: Path, n_processes: int) -> None:
    """At every update and in every validation, in fp32 and bf16, with DDP and FSDP."""
    cuts: list[dict[str, Any]] = [{"stop_at": update, "stopped_rank": update % n_processes} for update in range(1, 8)]
    cuts += [{"stop_at": update, "stop_in_validation": True} for update in (3, 6)]
    variants: dict[str, dict[str, Any]] = {"fp32": {}, "bf16": {"precision": "bf16"}}
    if n_processes > 1:
        variants["sharded"] = {"sharded": True}
    job = [
        task
        for name, settings in variants.items()
        for task in resume_tasks(micro_run / "store", tmp_path, name, cuts, **settings)
    ]
    do_job(forks, job, tmp_path, n_processes=n_processes)
    for name in variants:
        assert_resumed_exactly(tmp_path, name, len(cuts))


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_processes(forks: Forks, micro_run: Path, tmp_path: Path) -> None:
    task = {"task": "train", "store": str(micro_run / "store"), "n_accumulate": 2}
    do_job(forks, [{**task, "out": str(tmp_path / "one")}], tmp_path, n_processes=1)
    moved = {**task, "out": str(tmp_path / "moved")}
    do_job(forks, [{**moved, "stop_at": 5}], tmp_path, n_processes=2)
    assert read_state(checkpoint_folders(tmp_path / "moved" / "checkpoints")[-1]).update == 5
    do_job(forks, [{**moved, "stop_at": 7, "sharded": True}], tmp_path, n_processes=2)
    do_job(forks, [moved], tmp_path, n_processes=1)
    expected = newest_tensors(tmp_path / "one")
    for name, tensor in newest_tensors(tmp_path / "moved").items():
        torch.testing.assert_close(tensor, expected[name], rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_signal_to_torchrun_saves_and_one_process_goes_on(micro_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train = ["-m", "transduce", "train", str(micro_recipe), "--out", str(run), "--device", "cpu"]
    command = [sys.executable, *TORCHRUN, "2", *train]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*command, "--set", "training.max_updates=100000"], stderr=subprocess.PIPE, text=True, env=environment
    )
    deadline = time.monotonic() + 60
    while not checkpoint_folders(run / "checkpoints") and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    [saved_at] = [line for line in err.splitlines() if says(line, "saved", re.compile(r"update [\d,]+"))]
    saved = int(re.findall(r"update ([\d,]+)", saved_at)[0].replace(",", ""))
    assert read_state(checkpoint_folders(run / "checkpoints")[-1]).update == saved
    settings = ["--set", f"training.max_updates={saved + 2}"]
    resumed = subprocess.run(
        [sys.executable, *train, "--resume", *settings],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert resumed.returncode == 0, resumed.stderr
    assert says(resumed.stderr, f"update-{saved:08}")


@pytest.mark.slow
def test_a_process_that_is_killed_ends_the_other(micro_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "-m",
        "transduce",
        "train",
    ]
    settings = ["--out", str(run), "--device", "cpu", "--set", "training.max_updates=100000"]
    process = subprocess.Popen(
        [*command, str(micro_recipe), *settings], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not checkpoint_folders(run / "checkpoints") and time.monotonic() < deadline:
        time.sleep(0.05)
    holder = lock_holder(run)
    assert holder is not None
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (other,) = [int(child) for child in children if int(child) != holder.process]
    os.kill(other, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert says(err, "error: ", "another process", "killed"), err


def test_an_error_in_one_process_ends_all_with_its_message(forks: Forks, micro_run: Path, tmp_path: Path) -> None:
    task = {"task": "train", "store": str(micro_run / "store"), "out": str(tmp_path / "run"), "fail_at": (0, 5)}
    codes, log = run_job(forks, [task], tmp_path, n_processes=2)
    assert all(codes)
    assert says(log, "DataError: the disk of process 1 is gone")
    assert says(log, "PeerError: ", "process 1", "the disk of process 1 is gone")
