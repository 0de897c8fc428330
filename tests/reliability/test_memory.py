"""Models that do not fit into memory are rejected in one line, before anything is built."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import torch

from edits import edit_json
from forks import Forks
from said import naming, says
from transduce import memory
from transduce.config import ModelConfig, TrainingConfig
from transduce.diagnostics import resources
from transduce.errors import CheckpointError, TrainingError
from transduce.files import write_manifest
from transduce.inference.folder import read_model_config, read_model_folder
from transduce.machine_limits import FreeMemory, free_memory
from transduce.model import cost_of, make_model
from transduce.runs.memory import bytes_to_train, require_memory_to_train
from transduce.training import DistributedContext
from transduce.training.records import UpdateRecord
from transduce.training.tensorboard import TensorBoardEvents

pytestmark = pytest.mark.reliability

GROUPS = Path("/sys/fs/cgroup/memory")


def error_of(done: CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: "), done.stderr
    return done.stderr.splitlines()[-1]


# What is free


def fake_machine(folder: Path, groups: str, *, mounts: str = "") -> Path:
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "meminfo").write_text("MemTotal: 64000000 kB\nMemAvailable: 32000000 kB\n")
    (folder / "proc" / "self" / "status").write_text("VmPeak: 700 kB\nVmSize: 500000 kB\nVmData: 300000 kB\n")
    (folder / "proc" / "self" / "cgroup").write_text(groups)
    if mounts:
        (folder / "proc" / "self" / "mountinfo").write_text(mounts)
    return folder / "proc"


def limit_of(folder: Path, files: dict[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(f"{value}\n")


def test_limits_of_both_versions_and_of_all_groups_above(tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    proc = fake_machine(tmp_path, "4:memory:/box/inner\n0::/user/job/step\n")
    assert free_memory(proc, groups, {}) == FreeMemory(32_768_000_000)
    limit_of(groups / "user" / "job", {"memory.max": 10**9, "memory.current": 400_000_000})
    limit_of(groups / "user" / "job" / "step", {"memory.max": "max", "memory.current": 400_000_000})
    assert free_memory(proc, groups, {}) == FreeMemory(600_000_000, 10**9, "container")
    limit_of(groups / "user" / "job" / "step", {"memory.high": 700_000_000})
    assert free_memory(proc, groups, {}) == FreeMemory(300_000_000, 700_000_000, "container")
    statistics = "inactive_file 5\ntotal_inactive_file 10000000\ntotal_active_file 9\ntotal_mapped_file 99"
    older = {"memory.limit_in_bytes": 900_000_000, "memory.usage_in_bytes": 850_000_000, "memory.stat": statistics}
    limit_of(groups / "memory" / "box", older)
    assert free_memory(proc, groups, {}) == FreeMemory(60_000_000, 900_000_000, "container")
    [finding] = resources.examine_memory(proc, groups, {})
    assert says(finding.message, "0.1 GB", "0.9 GB", "container")
    assert finding.status == "problem"


def test_a_container_that_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    """The group's name is that of the host, and its parents are not mounted. The kernel writes a space as \\040."""
    seen = tmp_path / "seen from within"
    escaped = str(seen).replace(" ", r"\040")
    mounts = f"31 23 0:28 /docker/4711 {escaped} rw - cgroup cgroup rw,memory\n"
    proc = fake_machine(tmp_path, "4:memory:/docker/4711/job\n", mounts=mounts)
    limit_of(seen / "job", {"memory.limit_in_bytes": 10**9, "memory.usage_in_bytes": 10**8})
    assert free_memory(proc, tmp_path / "none", {}) == FreeMemory(900_000_000, 10**9, "container")
    (proc / "self" / "cgroup").write_text("4:memory:/../elsewhere\n")
    limit_of(seen, {"memory.limit_in_bytes": 2 * 10**9, "memory.usage_in_bytes": 10**8})
    assert free_memory(proc, tmp_path / "none", {}) == FreeMemory(1_900_000_000, 2 * 10**9, "container")


def test_limits_of_the_process(tmp_path: Path) -> None:
    proc = fake_machine(tmp_path, "")
    limits = {"VmSize": 2_512_000_000, "VmData": 10**10}
    assert free_memory(proc, tmp_path, limits) == FreeMemory(2_000_000_000, 2_512_000_000, "process")
    [finding] = resources.examine_memory(proc, tmp_path, limits)
    assert says(finding.message, "2.0 GB", "2.5 GB", "process", "ulimit -a")
    assert free_memory(tmp_path / "no system", tmp_path, {}) is None


# Models


def config_with(**changes: Any) -> ModelConfig:
    sizes = {"n_encoder_layers": 2, "n_decoder_layers": 3, "d_model": 16, "d_ff": 12, "d_k": 3, "d_v": 5, "n_heads": 2}
    fields = {**sizes, "src_vocab_size": 20, "tgt_vocab_size": 20, **changes}
    known = ModelConfig.members[fields.get("system", "transformer")].model_fields
    return ModelConfig(**{name: value for name, value in fields.items() if name in known})


@pytest.mark.parametrize("embeddings", ["three-way", "target", "separate"])
@pytest.mark.parametrize("system", ["transformer", "recurrent", "last-state", "convs2s", "bytenet"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_models_are_counted_by_formula(system: str, positions: str, embeddings: str) -> None:
    further: list[dict[str, Any]] = [{}]
    if system == "transformer":
        further += [{"norm": "pre"}, {"n_experts": 5, "n_active_experts": 2}, {"positions": "words"}]
    for changes in further:
        fields = {"system": system, "positions": positions, "embeddings": embeddings, "n_positions": 7, **changes}
        config = config_with(**fields)
        with torch.device("meta"):
            model = make_model(config)
        assert sum(weight.numel() for weight in model.parameters()) == cost_of(config).parameters


def test_what_training_takes_is_counted() -> None:
    config, n = config_with(), cost_of(config_with()).parameters
    assert bytes_to_train(config, TrainingConfig(), searches=False) == 16 * n
    assert bytes_to_train(config, TrainingConfig()) == 20 * n
    with_muon = bytes_to_train(config, TrainingConfig(optimiser="muon"), searches=False)
    assert with_muon == 16 * n - 4 * cost_of(config).parameters_of_matrices
    with pytest.raises(TrainingError, match=naming("parameters", re.compile(r"\b[\d,.]+ GB\b"))):
        require_memory_to_train(config_with(d_model=10**6, d_ff=10**6), TrainingConfig(), torch.device("cpu"))


def test_the_processes_of_a_machine_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process holds a full model, or a shard of it; the free memory is shared by the local processes."""
    config, training, device = config_with(), TrainingConfig(), torch.device("cpu")
    whole = bytes_to_train(config, training)
    parts = bytes_to_train(config, training, n_parts=4)
    for distributed, is_sharded, needed in (
        (DistributedContext(), False, whole),
        (DistributedContext(0, 4, 2), False, 2 * whole),
        (DistributedContext(0, 4, 2), True, 2 * parts),
    ):
        enough = int(needed / memory.USABLE_FRACTION) + 1
        monkeypatch.setattr(memory, "free_memory", lambda free=enough: FreeMemory(free))
        require_memory_to_train(config, training, device, distributed=distributed, is_sharded=is_sharded)
        monkeypatch.setattr(memory, "free_memory", lambda free=enough - 3: FreeMemory(free))
        with pytest.raises(TrainingError, match="needs about"):
            require_memory_to_train(config, training, device, distributed=distributed, is_sharded=is_sharded)


@pytest.mark.parametrize("sizes", [{"d_ff": 10**6, "d_model": 10**6}, {"n_heads": 10**4, "d_k": 10**5, "d_v": 10**5}])
def test_a_model_that_is_too_large_is_refused_before_any_text(
    forks: Forks, micro_recipe: Path, tmp_path: Path, sizes: dict[str, int]
) -> None:
    settings = [word for name, size in sizes.items() for word in ("--set", f"model.{name}={size}")]
    done = forks.run("train", micro_recipe, "--out", tmp_path / "run", *settings, timeout=30)
    assert says(error_of(done), "parameters", re.compile(r"\b[\d,.]+ GB\b"), re.compile(r"\b[\d,.]+ GB\b"))
    assert "preparing" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_model_folder_is_refused_that_does_not_fit(own_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: FreeMemory(100_000))
    with pytest.raises(CheckpointError, match=naming("parameters", re.compile(r"\b\d+ MB\b"), "0 MB")):
        read_model_folder(own_model, device=torch.device("cpu"))


def test_a_configuration_that_is_not_that_of_the_weights(forks: Forks, own_model: Path, tmp_path: Path) -> None:
    path = own_model / "config.json"
    edit_json(path, lambda values: values["model"].update(n_encoder_layers=900))
    assert says(error_of(forks.run("model", own_model, timeout=30)), "config.json")  # the manifest tells
    write_manifest(own_model, exempt=("README.md",))
    for verb in (["model", own_model], ["translate", own_model, "--in", path]):
        assert says(error_of(forks.run(*verb, timeout=30)), "config.json", "model.safetensors")


def test_the_configuration_of_a_good_folder(forks: Forks, micro_model: Path) -> None:
    assert read_model_config(micro_model).config.d_model == 32
    assert forks.run("model", micro_model).returncode == 0


# Real limits


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
def test_a_limit_of_address_space(forks: Forks, micro_recipe: Path, tmp_path: Path) -> None:
    limit = "resource.setrlimit(resource.RLIMIT_AS, (2_500_000_000, 2_500_000_000))"
    sizes = [word for name in ("d_model", "d_ff") for word in ("--set", f"model.{name}=5120")]
    done = forks.run("train", micro_recipe, "--out", tmp_path / "run", "--device", "cpu", *sizes, before=limit)
    assert says(error_of(done), re.compile(r"\b[\d,.]+ GB\b"), re.compile(r"\b[\d,.]+ GB\b"))
    assert not (tmp_path / "run").exists()


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group of version 1 with 900 MB, if creating one is permitted."""
    inner = Path("/proc/self/cgroup").read_text() if Path("/proc/self/cgroup").exists() else ""
    place = next((line.split(":", 2)[2] for line in inner.splitlines() if line.split(":")[1] == "memory"), None)
    if place is None:
        pytest.skip("there is no control group of version 1 for memory")
    group = GROUPS / place.strip("/") / f"transduce-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text("900000000")
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield group
    group.rmdir()


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["training.max_tokens_per_batch=100000", "model.d_model=2048"])
def test_a_small_container(forks: Forks, small_group: Path, micro_recipe: Path, tmp_path: Path, setting: str) -> None:
    enter = f"open({str(small_group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))"
    changes = [setting, "data.n_pairs=20000", "model.d_ff=4096", "model.n_encoder_layers=4"]
    sets = [word for change in changes for word in ("--set", change)]
    done = forks.run("train", micro_recipe, "--out", tmp_path / "run", "--device", "cpu", *sets, before=enter)
    assert says(error_of(done), re.compile(r"\b[\d,.]+ GB\b"), re.compile(r"\b[\d,.]+ GB\b"))


# TensorBoard files that cannot be written


@pytest.mark.skipif(not TensorBoardEvents.is_available(), reason="TensorBoard is not installed")
def test_curves_are_no_reason_to_end(tmp_path: Path) -> None:
    told: list[str] = []
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    events = TensorBoardEvents(in_the_way / "tensorboard", updates_done=0, log=told.append)
    record = UpdateRecord(1, 0, 1.0, 1.0, 1.0, 1.0, 1, 1, 1.0, 1.0, True)
    for _ in range(3):
        events(record)
    events.close()
    assert len(told) == 1
    assert says(told[0], re.compile(f"^warning: {in_the_way}/tensorboard/events.out.tfevents"), "TensorBoard")


@pytest.mark.skipif(not TensorBoardEvents.is_available(), reason="TensorBoard is not installed")
def test_curves_stop_where_a_file_may_not_grow(forks: Forks, tmp_path: Path) -> None:
    script = f"""
import resource, signal
from pathlib import Path
from transduce.training.records import UpdateRecord
from transduce.training.tensorboard import TensorBoardEvents
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
events = TensorBoardEvents(Path({str(tmp_path)!r}), updates_done=0, log=print)
for update in range(50):
    events(UpdateRecord(update, 0, 1.0, 1.0, 1.0, 1.0, 1, 1, 1.0, 1.0, True))
events.close()
"""
    done = forks.run(program=script)
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    assert says(line, "File too large")
    assert done.stderr == ""
    assert next(tmp_path.iterdir()).stat().st_size <= 600


@pytest.mark.skipif(not TensorBoardEvents.is_available(), reason="TensorBoard is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_curves_are_what_tensorboard_reads(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    events = TensorBoardEvents(tmp_path, updates_done=4, log=print)
    events(UpdateRecord(5, 0, 2.5, 1.0, 1.0, 1.0, 1, 1, 1.0, 1.0, True))
    events.close()
    version, start, scalars = EventFileLoader(str(events.path)).Load()
    assert (version.file_version, start.step, start.session_log.status) == ("brain.Event:2", 5, 1)
    assert scalars.step == 5
    assert next(value.tag for value in scalars.summary.value) == "train/loss_nats"
