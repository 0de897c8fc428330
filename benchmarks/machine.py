"""The machine that a benchmark runs on: its description, and its rate of matrix products."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from transduce.config import Precision

__all__ = ["machine", "matrix_rate", "memory_mb", "peak_memory_mb"]

# Packages whose versions are reported.
PACKAGES = "torch transformers x-transformers ctranslate2 sentencepiece tokenizers numpy".split()

MATRIX_SIZE = 2048
N_PRODUCTS = 3


def machine() -> dict[str, object]:
    """Return the processor, its cores and memory, and the versions of packages."""
    versions: dict[str, str] = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def memory_mb(process: int | None = None) -> float:
    """Return the resident memory of a process, by default of this one; without ``/proc``, the peak of this one."""
    return _status_mb("VmRSS", process) or _peak_without_proc_mb()


def peak_memory_mb(process: int | None = None) -> float:
    """Return the peak memory of a process since its start, by default of this one."""
    return _status_mb("VmHWM", process) or _peak_without_proc_mb()


def _status_mb(key: str, process: int | None) -> float | None:
    status = Path(f"/proc/{process or 'self'}/status")
    if not status.exists():
        return None
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines[key].split()[0]) * 1024 / 1e6


def _peak_without_proc_mb() -> float:
    import resource  # not used on Linux, where its figure includes memory inherited from the parent

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def matrix_rate(precision: Precision, device: torch.device | None = None) -> float:
    """Measure the FLOP/s of large square matrix products, an upper bound for training."""
    import torch

    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    is_cuda = device is not None and device.type == "cuda"
    size = 4 * MATRIX_SIZE if is_cuda else MATRIX_SIZE
    n_products = 16 * N_PRODUCTS if is_cuda else N_PRODUCTS
    left, right = (torch.randn(size, size, dtype=dtype, device=device) for _ in range(2))

    def multiply(n: int) -> None:
        for _ in range(n):
            left @ right
        if is_cuda:
            torch.cuda.synchronize(device)

    multiply(1)  # warm-up
    start = time.perf_counter()
    multiply(n_products)
    return n_products * 2 * size**3 / (time.perf_counter() - start)
