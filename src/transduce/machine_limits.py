"""Memory of this process: what is free (machine, cgroups v1 and v2, resource limits), and the allocator's settings."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = [
    "CGROUPS", "PROC", "FreeMemory", "control_groups", "free_memory", "keep_freed_memory", "numbers_in",
    "process_limits",
]  # fmt: skip

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# Parameters of mallopt, from glibc's malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
Limited = Literal["", "container", "process"]

# For cgroup v2 and v1: the files of the limits, and of the usage. Above "high", v2 throttles heavily.
_LIMITS = (
    (("memory.max", "memory.high"), "memory.current"),
    (("memory.limit_in_bytes",), "memory.usage_in_bytes"),
)


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """Bytes still available; ``limit`` and ``of`` name the cgroup or process limit that bounds them, if one does."""

    n_bytes: int
    limit: int | None = None
    of: Limited = ""


def free_memory(
    proc: Path = PROC, cgroups: Path = CGROUPS, limits: Mapping[str, int] | None = None
) -> FreeMemory | None:
    """Return the minimum of the machine's free memory and of the bytes left under each cgroup and process limit.

    ``limits`` are those of the process (``process_limits`` by default). None if nothing is known.
    """
    available = _sizes(proc / "meminfo").get("MemAvailable")  # Linux's estimate of what is free without swapping
    bounds = [] if available is None else [FreeMemory(available)]
    bounds += _in_control_groups(proc, cgroups)
    bounds += _in_process(proc, process_limits() if limits is None else limits)
    return min(bounds, key=lambda bound: bound.n_bytes, default=None)


def control_groups(proc: Path, cgroups: Path, controller: str) -> Iterator[Path]:
    """Yield the cgroup folders (v1 and v2) whose limits apply to this process, innermost first."""
    mounts = list(_mounts(proc))
    for line in _lines(proc / "self" / "cgroup"):
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        roots = [(root, mounted) for name, root, mounted in mounts if name == (controller if controllers else "")]
        for root, mounted in roots or [(cgroups / controller if controllers else cgroups, "/")]:
            inner = root / _relative_group(group, mounted)
            yield from (folder for folder in (inner, *inner.parents) if folder.is_relative_to(root))


def numbers_in(path: Path) -> Iterator[int]:
    """Yield the numbers in a kernel file; none if it is missing or says "max"."""
    yield from (int(word) for line in _lines(path) for word in line.split() if word.lstrip("-").isdigit())


def process_limits() -> dict[str, int]:
    """Return the limits of this process (``ulimit -v`` and ``-d``), by the matching key of ``/proc/self/status``."""
    try:
        import resource
    except ImportError:  # not Unix
        return {}
    limits = {
        "VmSize": resource.getrlimit(resource.RLIMIT_AS)[0],
        "VmData": resource.getrlimit(resource.RLIMIT_DATA)[0],
    }
    return {name: limit for name, limit in limits.items() if limit != resource.RLIM_INFINITY}


def _in_control_groups(proc: Path, cgroups: Path) -> Iterator[FreeMemory]:
    for folder in control_groups(proc, cgroups, "memory"):
        for names, usage in _LIMITS:
            used = next(numbers_in(folder / usage), None)
            for limit in (number for name in names for number in numbers_in(folder / name)):
                if used is not None:
                    left = limit - used + _reclaimable(folder / "memory.stat")
                    yield FreeMemory(min(max(0, left), limit), limit, "container")


def _in_process(proc: Path, limits: Mapping[str, int]) -> Iterator[FreeMemory]:
    """Yield the address space left under each limit of the process."""
    sizes = _sizes(proc / "self" / "status") if limits else {}
    for name, limit in limits.items():
        yield FreeMemory(max(0, limit - sizes.get(name, 0)), limit, "process")


def _mounts(proc: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield (controller or "" for v2, mount point, mounted group) of each cgroup file system."""
    for line in _lines(proc / "self" / "mountinfo"):
        mount, _, kind = line.partition(" - ")
        fields, (system, *options) = mount.split(), [*kind.split(), ""]
        if len(fields) < 5 or not system.startswith("cgroup"):
            continue
        names = [""] if system == "cgroup2" else options[-2].split(",") if len(options) > 1 else []
        yield from ((name, Path(_unescaped(fields[4])), _unescaped(fields[3])) for name in names)


def _unescaped(field: str) -> str:
    """Return a path of mountinfo, in which a space is written as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), field)


def _relative_group(group: str, mounted: str) -> str:
    """Return the path of a group relative to the mounted one; "" if it lies outside."""
    parts, root = Path(group).parts, Path(mounted).parts
    if ".." in parts or parts[: len(root)] != root:
        return ""
    return os.path.join("", *parts[len(root) :])


def _reclaimable(path: Path) -> int:
    """Return the bytes of page cache that the kernel can reclaim, without mapped files such as libraries."""
    values = {name: int(value) for name, value in (line.split() for line in _lines(path) if len(line.split()) == 2)}

    def total(name: str) -> int:
        return values.get(f"total_{name}", values.get(name, 0))  # v1 also counts the group without its children

    inactive = total("inactive_file")
    return max(inactive, inactive + total("active_file") - total("mapped_file") - total("file_mapped"))


def _sizes(path: Path) -> dict[str, int]:
    """Read the lines "NAME: NUMBER kB" of a ``/proc`` file, in bytes."""
    lines = (line.split() for line in _lines(path))
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) == 3 and words[2] == "kB"}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:  # not Linux, or no such limit
        return []


def keep_freed_memory() -> None:
    """Make glibc keep freed memory instead of returning it to the system; without glibc, do nothing.

    Each step frees and allocates the same large buffers. By default glibc returns them to the kernel, which clears the
    pages again.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)  # allocate large buffers on the heap
        mallopt(M_TRIM_THRESHOLD, -1)  # never return memory
        mallopt(M_TOP_PAD, 64 << 20)
