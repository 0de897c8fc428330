"""Diagnostics of what the machine has: cores, memory, disks."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from transduce.corpora import cache_folder
from transduce.findings.finding import Finding, good, note, problem
from transduce.machine_limits import CGROUPS, PROC, control_groups, free_memory, numbers_in

__all__ = ["available_cores", "examine_disks", "examine_memory"]

GB = 1e9
LITTLE_MEMORY, LITTLE_DISK = 1 * GB, 1 * GB  # training a small model, or unpacking a corpus, takes more


def available_cores(proc: Path = PROC, cgroups: Path = CGROUPS) -> int:
    """Return the number of cores that this process may use, by CPU affinity and the container's quota (rounded up)."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for folder in control_groups(proc, cgroups, "cpu"):
        quota, period = [*numbers_in(folder / "cpu.max"), None, None][:2]
        if quota is None:  # cgroups version 1
            quota = next(numbers_in(folder / "cpu.cfs_quota_us"), None)
            period = next(numbers_in(folder / "cpu.cfs_period_us"), None)
        if quota is not None and period and quota > 0:
            n_cores = min(n_cores, max(1, math.ceil(quota / period)))
    return n_cores


def examine_memory(
    proc: Path = PROC, cgroups: Path = CGROUPS, limits: Mapping[str, int] | None = None
) -> Iterator[Finding]:
    """Report the free memory of the machine, or what a container or this process may still use."""
    free = free_memory(proc, cgroups, limits)
    if free is None:
        yield note("memory", "this system does not report the free memory")
        return
    whose = {"": "", "container": "this container may use", "process": "this process may use (see: ulimit -a)"}[free.of]
    amount = f"{free.n_bytes / GB:.1f} GB free"
    if free.limit is not None:
        amount += f" of the {free.limit / GB:.1f} GB that {whose}"
    if free.n_bytes < LITTLE_MEMORY:
        yield problem("memory", f"{amount}: too little to train; close other programs, or use a larger machine")
    else:
        yield good("memory", amount)


def examine_disks() -> Iterator[Finding]:
    """Check free space and permissions of the folders of runs, corpora and temporary files."""
    folders = {
        "disk of runs": (Path.cwd(), "name another folder with --out"),
        "disk of corpora": (cache_folder(), "set XDG_CACHE_HOME, or name a data folder with --data and --out"),
        "disk of temporary files": (Path(tempfile.gettempdir()), "set TMPDIR"),
    }
    for subject, (folder, help) in folders.items():
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        amount = f"{free / GB:,.1f} GB free in {folder}"
        if not os.access(existing, os.W_OK | os.X_OK):
            yield note(subject, f"{existing} cannot be written to by this user; {help}")
        elif free < LITTLE_DISK:
            yield problem(subject, f"{amount}: too little for checkpoints and corpora; free some, or {help}")
        else:
            yield good(subject, amount)
