"""What this process may take of its machine: what is free, control groups of both versions, and limits of a process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["CGROUPS", "PROC", "FreeMemory", "control_groups", "free_memory", "numbers_in", "process_limits"]

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
Limited = Literal["", "container", "process"]

# For each version of control groups: what may be used, and what is. Above "high", version 2 slows down to a crawl.
_LIMITS = (
    (("memory.max", "memory.high"), "memory.current"),
    (("memory.limit_in_bytes",), "memory.usage_in_bytes"),
)


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """How many bytes may still be taken, and by which limit, where it is not all that the machine has."""

    n_bytes: int
    limit: int | None = None
    of: Limited = ""


def free_memory(
    proc: Path = PROC, cgroups: Path = CGROUPS, limits: Mapping[str, int] | None = None
) -> FreeMemory | None:
    """The least of what the machine has, what is left of each control group, and of the limits of the process.

    ``limits`` are those of the process, by what they are of (``process_limits``). None where no system tells.
    """
    available = _sizes(proc / "meminfo").get("MemAvailable")  # what Linux says that programs can have without swapping
    found = [] if available is None else [FreeMemory(available)]
    found += _in_control_groups(proc, cgroups)
    found += _in_process(proc, process_limits() if limits is None else limits)
    return min(found, key=lambda each: each.n_bytes, default=None)


def control_groups(proc: Path, cgroups: Path, controller: str) -> Iterator[Path]:
    """The folders of limits that hold for this process, inner ones first, of both versions of control groups."""
    mounts = list(_mounts(proc))
    for line in _lines(proc / "self" / "cgroup"):
        _, controllers, place = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        roots = [(root, inside) for name, root, inside in mounts if name == (controller if controllers else "")]
        for root, inside in roots or [(cgroups / controller if controllers else cgroups, "/")]:
            below = _below(place, inside)
            yield from (folder for folder in ((root / below), *(root / below).parents) if folder.is_relative_to(root))


def numbers_in(path: Path) -> Iterator[int]:
    """The numbers in a small file of the kernel; none where it is not there or says "max"."""
    yield from (int(word) for line in _lines(path) for word in line.split() if word.lstrip("-").isdigit())


def process_limits() -> dict[str, int]:
    """The limits that hold for this process (``ulimit -v`` and ``-d``), by the line of ``/proc/self/status``."""
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
        for names, used in _LIMITS:
            taken = next(numbers_in(folder / used), None)
            for limit in (number for name in names for number in numbers_in(folder / name)):
                if taken is not None:
                    left = limit - taken + _reclaimable(folder / "memory.stat")
                    yield FreeMemory(min(max(0, left), limit), limit, "container")


def _in_process(proc: Path, limits: Mapping[str, int]) -> Iterator[FreeMemory]:
    """Of address space, as much as is missing to the limit."""
    sizes = _sizes(proc / "self" / "status") if limits else {}
    for name, limit in limits.items():
        yield FreeMemory(max(0, limit - sizes.get(name, 0)), limit, "process")


def _mounts(proc: Path) -> Iterator[tuple[str, Path, str]]:
    """Of each file system of control groups: a controller ("" for version 2), where it is, and which group it shows."""
    for line in _lines(proc / "self" / "mountinfo"):
        place, _, kind = line.partition(" - ")
        fields, (system, *options) = place.split(), [*kind.split(), ""]
        if len(fields) < 5 or not system.startswith("cgroup"):
            continue
        names = [""] if system == "cgroup2" else options[-2].split(",") if len(options) > 1 else []
        yield from ((name, Path(fields[4]), fields[3]) for name in names)


def _below(place: str, inside: str) -> str:
    """A group as seen from the one that is mounted; that one itself for what lies outside of it."""
    parts, root = Path(place).parts, Path(inside).parts
    if ".." in parts or parts[: len(root)] != root:
        return ""
    return os.path.join("", *parts[len(root) :])


def _reclaimable(path: Path) -> int:
    """Files in memory that the kernel drops when programs want the place: but those that are mapped, as libraries."""
    values = {name: int(value) for name, value in (line.split() for line in _lines(path) if len(line.split()) == 2)}

    def total(name: str) -> int:
        return values.get(f"total_{name}", values.get(name, 0))  # version 1 counts a group without those inside it, too

    unused = total("inactive_file")
    return max(unused, unused + total("active_file") - total("mapped_file") - total("file_mapped"))


def _sizes(path: Path) -> dict[str, int]:
    """The lines of ``/proc`` that are sizes in kB, in bytes."""
    words = (line.split() for line in _lines(path))
    return {each[0].rstrip(":"): int(each[1]) * 1024 for each in words if len(each) == 3 and each[2] == "kB"}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:  # another system, or a limit that is not set here
        return []
