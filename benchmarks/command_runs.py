"""Runs of ``transduce train``, sampled while they train; with different memory allocators. Part of ``whole_run.py``.

One run has all cores. Several train at the same time, each on one core with one thread, so that they see the same load
of the machine. Rates follow from the command's ``metrics.jsonl``: of the training alone, and of the elapsed time, with
validations and checkpoints. The allocators:

- ``c-library``: the default allocator;
- ``few-kernels``: oneDNN caches 64 kernels instead of 1,024;
- ``jemalloc``: replaces the C library's allocator (libjemalloc2 on Debian and Ubuntu);
- ``jemalloc-minute``: returns freed memory within a minute instead of ten seconds;
- ``jemalloc-keeping``: never returns memory to the system; it can use up all memory within minutes.

Linux only: reads ``/proc``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from machine import machine, memory_mb, peak_memory_mb

__all__ = ["WAYS", "Watched", "watch"]

# Settings of each allocator, as environment variables.
WAYS: dict[str, dict[str, str]] = {
    "c-library": {},
    "few-kernels": {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"},
    "jemalloc": {"LD_PRELOAD": "libjemalloc.so.2", "MALLOC_CONF": "oversize_threshold:0"},
    "jemalloc-minute": {
        "LD_PRELOAD": "libjemalloc.so.2",
        "MALLOC_CONF": "oversize_threshold:0,dirty_decay_ms:60000",
    },
    "jemalloc-keeping": {
        "LD_PRELOAD": "libjemalloc.so.2",
        "MALLOC_CONF": "oversize_threshold:0,dirty_decay_ms:-1,muzzy_decay_ms:-1",
    },
}
EARLY = (2, 4)  # samples (minutes) of the early rate
LATE_SHARE = 0.25  # of the run, for the late rate


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of a run at one time."""

    n_updates: int
    tokens: int  # target tokens so far
    seconds: float  # of training, without validations and checkpoints
    elapsed_s: float  # with them
    memory_mb: float


@dataclass(frozen=True, slots=True)
class Watched:
    """The samples of every run, one each ``every_s`` seconds of wall time, by allocator."""

    samples: dict[str, list[Sample]]
    peak_memory_mb: dict[str, float]
    every_s: float
    n_cores: int  # of each run

    def as_json(self) -> dict[str, Any]:
        """Return samples and summaries as plain values."""
        return {"every_s": self.every_s, "cores_each": self.n_cores, "machine": machine()} | {
            "runs": {name: self._summary(name) for name in self.samples}
        }

    def _summary(self, name: str) -> dict[str, Any]:
        """Compare the last quarter of a run (minutes 30 to 40 of 40) with minutes 2 to 4."""
        samples = self.samples[name]
        n = len(samples) - 1
        early_end = min(EARLY[1], max(1, n // 2))
        early_start = min(EARLY[0], early_end - 1)
        late_start = min(n - 1, round(n * (1 - LATE_SHARE)))
        spans = ((samples[early_start], samples[early_end]), (samples[late_start], samples[n]))
        early, late = (rate(*span) for span in spans)
        elapsed_early, elapsed_late = (elapsed_rate(*span) for span in spans)
        return {
            "samples": [
                [s.n_updates, s.tokens, round(s.seconds, 1), round(s.elapsed_s, 1), round(s.memory_mb)] for s in samples
            ],
            "early": [early_start, early_end],
            "late": [late_start, n],
            "tokens_per_s_early": round(early, 1),
            "tokens_per_s_late": round(late, 1),
            "late_over_early": round(late / early, 3) if early else None,
            "elapsed_tokens_per_s_early": round(elapsed_early, 1),
            "elapsed_tokens_per_s_late": round(elapsed_late, 1),
            "memory_mb_early": round(samples[early_end].memory_mb),
            "memory_mb_end": round(samples[-1].memory_mb),
            "memory_mb_peak": round(self.peak_memory_mb[name]),
        }

    def as_text(self) -> str:
        """Format the samples as one table for each run."""
        about: Any = machine()
        lines = [f"{about['cpu']}, torch {about['versions']['torch']}, {self.n_cores} cores each"]
        for name, samples in self.samples.items():
            summary = self._summary(name)
            lines.append(f"\n{name}\n  minute  updates  tokens/s    memory")
            for number, (before, after) in enumerate(pairwise(samples), 1):
                minute = f"{number * self.every_s / 60:g}"
                lines.append(
                    f"  {minute:>6} {after.n_updates:8,} {rate(before, after):9,.0f} {after.memory_mb:6,.0f} MB"
                )
            lines.append(
                "  tokens/s of samples {} to {}: {:,.0f}".format(*summary["late"], summary["tokens_per_s_late"])
                + "; {} to {}: {:,.0f}".format(*summary["early"], summary["tokens_per_s_early"])
                + "; with validations and checkpoints {:,.0f} and {:,.0f}".format(
                    summary["elapsed_tokens_per_s_late"], summary["elapsed_tokens_per_s_early"]
                )
                + f"; peak memory {summary['memory_mb_peak']:,} MB"
            )
        return "\n".join(lines)


def rate(before: Sample, after: Sample) -> float:
    """Return the target tokens per second of training between two samples."""
    return (after.tokens - before.tokens) / max(after.seconds - before.seconds, 1e-9)


def elapsed_rate(before: Sample, after: Sample) -> float:
    """Return the target tokens per elapsed second between two samples, validations and checkpoints included."""
    return (after.tokens - before.tokens) / max(after.elapsed_s - before.elapsed_s, 1e-9)


def watch(
    recipe: str, *, data: Path | None, settings: Sequence[str], minutes: float, ways: Sequence[str], every_s: float
) -> Watched:
    """Train with each allocator for ``minutes``, and sample."""
    arguments = [recipe, *([] if data is None else ["--data", str(data)])]
    arguments += [word for setting in settings for word in ("--set", setting)]
    cores = sorted(os.sched_getaffinity(0))
    if len(ways) > len(cores):
        raise SystemExit(f"{len(ways)} runs need a core each, got {len(cores)} cores; name fewer with --ways")
    shares = [cores] if len(ways) == 1 else [[core] for core in cores]
    with tempfile.TemporaryDirectory() as folder:
        runs: list[_Run] = []
        try:
            for name, share in zip(ways, shares, strict=False):
                runs.append(_Run(name, share, Path(folder) / name, arguments))
            for run in runs:
                run.wait_for_start()
            for _ in range(max(1, round(60 * minutes / every_s))):
                time.sleep(every_s)
                for run in runs:
                    run.sample()
            peaks = {run.name: peak_memory_mb(run.process.pid) for run in runs}
        finally:
            for run in runs:
                run.stop()
    return Watched({run.name: run.samples for run in runs}, peaks, every_s, len(shares[0]))


class _Run:
    """A training run in its own process, on its own cores."""

    def __init__(self, name: str, cores: Sequence[int], folder: Path, arguments: Sequence[str]) -> None:
        self.name, self.folder, self.samples = name, folder, [Sample(0, 0, 0.0, 0.0, 0.0)]
        command = [sys.executable, "-m", "transduce", "train", *arguments, "--out", str(folder)]
        self.log = folder.with_suffix(".log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, "--set", "training.log_every_updates=10"],
                env=os.environ | {"OMP_NUM_THREADS": str(len(cores))} | WAYS[name],
                stdout=log,
                stderr=log,
            )
        os.sched_setaffinity(self.process.pid, cores)

    def wait_for_start(self) -> None:
        """Wait for the first logged update. Exits if the run fails, or the allocator was not loaded."""
        while not self._updates():
            self._require_alive()
            time.sleep(0.5)
        library = WAYS[self.name].get("LD_PRELOAD", "")
        if library not in Path(f"/proc/{self.process.pid}/maps").read_text():
            raise SystemExit(f"{self.name}: {library} was not found (apt install libjemalloc2)")

    def sample(self) -> None:
        """Record progress and memory. Exits if the training has ended."""
        self._require_alive()
        updates = self._updates()
        last, tokens = updates[-1], [0, *(update["tgt_tokens"] for update in updates)]
        windows = zip(pairwise(tokens), updates, strict=True)
        seconds = sum((after - before) / update["tgt_tokens_per_s"] for (before, after), update in windows)
        resident_mb = memory_mb(self.process.pid)
        self.samples.append(Sample(last["update"], last["tgt_tokens"], seconds, last["elapsed_s"], resident_mb))

    def stop(self) -> None:
        """Kill the process; its result is not needed."""
        self.process.kill()
        self.process.wait()

    def _require_alive(self) -> None:
        if self.process.poll() is not None:
            last = self.log.read_text().splitlines()[-1:]
            raise SystemExit(f"{self.name}: the training has ended: {' '.join(last)}")

    def _updates(self) -> list[Any]:
        metrics = self.folder / "metrics.jsonl"
        lines = metrics.read_text().split("\n")[:-1] if metrics.exists() else []
        return [record for record in map(json.loads, lines) if record["kind"] == "update"]
