"""Speed and memory of CPU training over time, with different memory allocators.

    python benchmarks/long_run.py [--minutes 8] [--ways c-library jemalloc] -- recipes/multi30k-en-de.toml --data DIR

Arguments after ``--`` are passed to ``transduce train``. The configurations train at the same time, each on one core
with one thread, so that they see the same load of the machine:

- ``c-library``: the default allocator;
- ``few-kernels``: oneDNN caches 64 kernels instead of 1,024;
- ``jemalloc``: replaces the C library's allocator (libjemalloc2 on Debian and Ubuntu);
- ``jemalloc-minute``: returns freed memory within a minute instead of ten seconds;
- ``jemalloc-keeping``: never returns memory to the system; it can use up all memory within minutes.

Linux only: reads ``/proc``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from machine import machine

CONFIGURATIONS: dict[str, dict[str, str]] = {
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


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of a run at one minute."""

    n_updates: int
    tokens: int  # target tokens so far
    seconds: float  # of training
    resident_mb: float


class Run:
    """A training run in its own process, on its own core."""

    def __init__(self, name: str, core: int, folder: Path, arguments: list[str]) -> None:
        self.name, self.folder, self.samples = name, folder, [Sample(0, 0, 0.0, 0.0)]
        command = [sys.executable, "-m", "transduce", "train", *arguments, "--out", str(folder)]
        self.log = folder.with_suffix(".log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, "--set", "training.log_every_updates=10"],
                env=os.environ | {"OMP_NUM_THREADS": "1"} | CONFIGURATIONS[name],
                stdout=log,
                stderr=log,
            )
        os.sched_setaffinity(self.process.pid, {core})

    def wait_for_start(self) -> None:
        """Wait for the first logged update. Exits if the run fails, or the allocator was not loaded."""
        while not self._updates():
            self._require_alive()
            time.sleep(1)
        library = CONFIGURATIONS[self.name].get("LD_PRELOAD", "")
        if library not in Path(f"/proc/{self.process.pid}/maps").read_text():
            raise SystemExit(f"{self.name}: {library} was not found (apt install libjemalloc2)")

    def sample(self) -> None:
        """Record progress and memory. Exits if the training has ended."""
        self._require_alive()
        last = self._updates()[-1]
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        resident_mb = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        self.samples.append(Sample(last["update"], last["tgt_tokens"], last["elapsed_s"], resident_mb))

    def stop(self) -> None:
        """Kill the process; its result is not needed."""
        self.process.kill()
        self.process.wait()

    def _require_alive(self) -> None:
        if self.process.poll() is not None:
            last = self.log.read_text().splitlines()[-1:]
            raise SystemExit(f"{self.name}: the training has ended: {' '.join(last)}")

    def _updates(self) -> list[dict[str, float]]:
        metrics = self.folder / "metrics.jsonl"
        lines = metrics.read_text().split("\n")[:-1] if metrics.exists() else []
        return [record for record in map(json.loads, lines) if record["kind"] == "update"]


def main() -> None:
    """Train, sample once a minute, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=8, help="training time (8)")
    parser.add_argument("--ways", nargs="+", choices=CONFIGURATIONS, default=["c-library", "jemalloc"])
    parser.add_argument("arguments", nargs="+", help="arguments of transduce train, after --")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(options.ways) > len(cores):
        raise SystemExit(f"{len(options.ways)} runs need a core each, got {len(cores)} cores; name fewer with --ways")
    with tempfile.TemporaryDirectory() as folder:
        assignment = zip(options.ways, cores, strict=False)
        runs = [Run(name, core, Path(folder) / name, options.arguments) for name, core in assignment]
        try:
            _watch(runs, options.minutes)
        finally:
            for run in runs:
                run.stop()
    print(f"{machine()['cpu']}, torch {machine()['versions']['torch']}, one core each")  # type: ignore[index]
    for run in runs:
        print(f"\n{run.name}\n  minute  updates  tokens/s    memory")
        for minute, (before, after) in enumerate(zip(run.samples, run.samples[1:], strict=False), 1):
            rate = (after.tokens - before.tokens) / max(after.seconds - before.seconds, 1e-9)
            print(f"  {minute:6} {after.n_updates:8,} {rate:9,.0f} {after.resident_mb:6,.0f} MB")


def _watch(runs: list[Run], minutes: int) -> None:
    for run in runs:
        run.wait_for_start()
    for _ in range(minutes):
        time.sleep(60)
        for run in runs:
            run.sample()


if __name__ == "__main__":
    main()
