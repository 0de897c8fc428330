"""How many threads an engine may use: in the thread that calls it, or in a process that is started."""

from __future__ import annotations

import os
import threading

__all__ = ["limit_threads", "n_usable_threads", "thread_variables"]

_own = threading.local()


def limit_threads(n: int) -> None:
    """Let engines that this thread calls use at most ``n`` threads, because others compute beside it."""
    _own.limit = n


def n_usable_threads() -> int:
    """Return the threads that a batch is divided among: OMP_NUM_THREADS, else the processors of this process."""
    named = os.environ.get("OMP_NUM_THREADS", "")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = min(int(named), usable) if named.isdigit() and int(named) > 0 else usable
    return min(asked, getattr(_own, "limit", asked))


def thread_variables(n: int) -> dict[str, str]:
    """Return the environment of a process whose engine, in C or of PyTorch, uses ``n`` threads."""
    return {"OMP_NUM_THREADS": str(n), "MKL_NUM_THREADS": str(n)}
