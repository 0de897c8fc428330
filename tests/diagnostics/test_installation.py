"""Findings about faulty installations and machines, simulated by numbers and small files."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from said import says
from transduce.diagnostics import machine, resources
from transduce.diagnostics.installation import examine_installation
from transduce.findings.finding import Finding, good, guard
from transduce.inference.native.binding import kernels, library


def by_subject(findings: Iterator[Finding]) -> dict[str, Finding]:
    return {finding.subject: finding for finding in findings}


def test_packages_that_are_missing_or_old(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name in ("sacremoses", "tensorboard"):
            raise importlib.metadata.PackageNotFoundError(name)
        return "0.20.4" if name == "tokenizers" else real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = by_subject(examine_installation())
    assert found["sacremoses"].status == "problem"
    assert says(found["sacremoses"].message, "pip install 'sacremoses>=0.1'")
    assert found["tokenizers"].status == "problem"
    assert says(found["tokenizers"].message, "0.20.4", "0.21")
    assert re.search(r"not installed:.* tensorboard \([^)]*tensorboard>=", found["extras"].message)
    assert found["torch"].status == "good"


def test_every_package_of_this_environment_can_be_imported() -> None:
    found = by_subject(examine_installation())
    assert [name for name, each in found.items() if "cannot be imported" in each.message] == []
    assert found["markdown-it-py"].status == "good"  # which is imported as markdown_it


def test_the_kernels_are_those_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system lists what the processor can do: a compiler whose own question says no to all is found out."""
    if library() is None:
        pytest.skip("the engine in C was not compiled")
    monkeypatch.setenv("TRANSDUCE_ISA", "")
    cpuinfo = Path("/proc/cpuinfo")
    listed = re.search(r"^flags\s*: (.*)", cpuinfo.read_text() if cpuinfo.exists() else "", re.MULTILINE)
    flags = set(listed[1].split()) if listed else set[str]()
    if platform.machine() == "x86_64" and {"avx2", "fma"} <= flags:
        assert kernels() in ("avx2", "avx512", "amx")
        assert (kernels() == "avx2") or {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"} <= flags
    monkeypatch.setenv("TRANSDUCE_ISA", "klingon")
    found = by_subject(examine_installation())["engine in C"]
    assert (found.status, says(found.message, "klingon")) == ("problem", True)


def test_a_package_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def import_module(name: str) -> object:
        if name == "sacrebleu":
            raise ImportError("libx.so: cannot open shared object file\nand more")
        return real(name)

    monkeypatch.setattr(importlib, "import_module", import_module)
    found = by_subject(examine_installation())["sacrebleu"]
    assert found.status == "problem"
    assert says(found.message, "ImportError: libx.so: cannot open shared object file")
    assert "and more" not in found.message


def test_more_threads_than_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_cores = resources.available_cores(tmp_path, tmp_path)
    monkeypatch.setattr(torch, "get_num_threads", lambda: n_cores + 3)
    monkeypatch.setenv("OMP_NUM_THREADS", str(n_cores + 3))
    [finding] = machine.examine_threads(tmp_path, tmp_path)
    assert finding.status == "problem"
    assert says(finding.message, "OMP_NUM_THREADS", n_cores + 3, f"OMP_NUM_THREADS={n_cores}")
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(torch, "get_num_threads", lambda: n_cores)
    assert [finding.status for finding in machine.examine_threads(tmp_path, tmp_path)] == ["good"]


def test_the_share_of_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(16)), raising=False)
    proc, group = tmp_path / "proc", tmp_path / "groups" / "box"
    (proc / "self").mkdir(parents=True)
    group.mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("0::/box/inner\n")
    (proc / "meminfo").write_text("MemTotal: 64000000 kB\nMemAvailable: 32000000 kB\n")
    assert resources.available_cores(proc, tmp_path / "groups") == 16
    (group / "cpu.max").write_text("250000 100000\n")
    assert resources.available_cores(proc, tmp_path / "groups") == 3
    (group / "cpu.max").write_text("max 100000\n")
    assert resources.available_cores(proc, tmp_path / "groups") == 16
    [finding] = resources.examine_memory(proc, tmp_path / "groups")
    assert (finding.status, re.findall(r"[\d.]+ GB", finding.message)) == ("good", ["32.8 GB"])
    (group / "memory.max").write_text("4000000000\n")
    (group / "memory.current").write_text("3500000000\n")
    (group / "memory.stat").write_text("anon 5\ninactive_file 100000000\n")
    [finding] = resources.examine_memory(proc, tmp_path / "groups")
    assert finding.status == "problem"
    assert says(finding.message, "0.6 GB", "4.0 GB", "container")


def test_the_share_of_an_older_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(16)), raising=False)
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("7:memory:/\n4:cpu,cpuacct:/\n")
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("200000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert resources.available_cores(tmp_path, tmp_path) == 2
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    assert resources.available_cores(tmp_path, tmp_path) == 16
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("8000000000")
    (tmp_path / "memory" / "memory.usage_in_bytes").write_text("1000000000")
    [finding] = resources.examine_memory(tmp_path, tmp_path)
    assert says(finding.message, "7.0 GB", "8.0 GB", "container")


def test_full_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type("Usage", (), {"free": 10**6}))
    assert [finding.status for finding in resources.examine_disks()] == ["problem"] * 3


def test_wrong_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    [finding] = [found for found in machine.examine_products() if found.subject == "numbers on cpu"]
    assert finding.status == "good"
    monkeypatch.setattr(machine, "fused_attention", lambda q, k, v: 1.01 * machine.dot_product_attention(q, k, v)[0])
    [finding] = [found for found in machine.examine_products() if found.subject == "numbers on cpu"]
    assert finding.status == "problem"
    assert says(finding.message, "fp32", "fp32", "float64", "1e-02")
    monkeypatch.setattr(
        machine, "fused_attention", lambda q, k, v: torch.nan * machine.dot_product_attention(q, k, v)[0]
    )
    [finding] = [found for found in machine.examine_products() if found.subject == "numbers on cpu"]
    assert re.search(r"\bfp32\b.*\bbf16\b.*\bfloat64\b", finding.message)


def test_a_doctor_survives_what_breaks() -> None:
    def broken() -> Iterator[Finding]:
        yield good("a", "fine")
        raise ZeroDivisionError("one line\nanother")

    first, second = guard("b", broken())
    assert first == good("a", "fine")
    assert (second.status, second.subject) == ("problem", "b")
    assert says(second.message, "ZeroDivisionError: one line")
    assert "another" not in second.message
