"""How speed and memory of training on a CPU change while a run lasts, with one memory allocator and with another.

    python benchmarks/long_run.py [--minutes 8] [--ways c-library jemalloc] -- recipes/multi30k-en-de.toml --data DIR

What follows ``--`` is given to ``transduce train``. The ways train at the same time, each on one core with one thread,
so that whatever the machine does meanwhile happens to both:

- ``c-library``: memory as it comes;
- ``few-kernels``: oneDNN keeps 64 kernels, where it keeps 1,024;
- ``jemalloc``: that library in the C library's place (libjemalloc2 on Debian and Ubuntu);
- ``jemalloc-minute``: it gives back within a minute, where it does within ten seconds;
- ``jemalloc-keeping``: it gives nothing back to the system. It can take all memory within minutes.

Linux only: cores and memory are looked up in its ``/proc``.
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


@dataclass(frozen=True, slots=True)
class Look:
    """At a run, once a minute."""

    n_updates: int
    tokens: int  # target tokens since it began
    seconds: float  # of training
    resident_mb: float


class Run:
    """A training in a process of its own, on a core of its own."""

    def __init__(self, way: str, core: int, folder: Path, arguments: list[str]) -> None:
        self.way, self.folder, self.looks = way, folder, [Look(0, 0, 0.0, 0.0)]
        command = [sys.executable, "-m", "transduce", "train", *arguments, "--out", str(folder)]
        self.log = folder.with_suffix(".log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, "--set", "training.log_every_updates=10"],
                env=os.environ | {"OMP_NUM_THREADS": "1"} | WAYS[way],
                stdout=log,
                stderr=log,
            )
        os.sched_setaffinity(self.process.pid, {core})

    def wait_for_its_beginning(self) -> None:
        """Until it has made an update that is logged. Ends the benchmark if it cannot, or not in its way."""
        while not self._updates():
            self._require_alive()
            time.sleep(1)
        library = WAYS[self.way].get("LD_PRELOAD", "")
        if library not in Path(f"/proc/{self.process.pid}/maps").read_text():
            raise SystemExit(f"{self.way}: {library} is not there (apt install libjemalloc2)")

    def look(self) -> None:
        """Note how far it is, and how much memory it holds. Ends the benchmark if the training has ended."""
        self._require_alive()
        last = self._updates()[-1]
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        resident_mb = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        self.looks.append(Look(last["update"], last["tgt_tokens"], last["elapsed_s"], resident_mb))

    def stop(self) -> None:
        """At once; nobody needs its end."""
        self.process.kill()
        self.process.wait()

    def _require_alive(self) -> None:
        if self.process.poll() is not None:
            last = self.log.read_text().splitlines()[-1:]
            raise SystemExit(f"{self.way}: the training has ended, saying: {' '.join(last)}")

    def _updates(self) -> list[dict[str, float]]:
        metrics = self.folder / "metrics.jsonl"
        lines = metrics.read_text().split("\n")[:-1] if metrics.exists() else []
        return [record for record in map(json.loads, lines) if record["kind"] == "update"]


def main() -> None:
    """Train, look once a minute, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=8, help="of training (8)")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["c-library", "jemalloc"])
    parser.add_argument("arguments", nargs="+", help="of transduce train, behind --")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(options.ways) > len(cores):
        raise SystemExit(f"{len(options.ways)} ways need a core each, there are {len(cores)}; name fewer with --ways")
    with tempfile.TemporaryDirectory() as folder:
        places = zip(options.ways, cores, strict=False)
        runs = [Run(way, core, Path(folder) / way, options.arguments) for way, core in places]
        try:
            _watch(runs, options.minutes)
        finally:
            for run in runs:
                run.stop()
    print(f"{machine()['cpu']}, torch {machine()['versions']['torch']}, one core each")  # type: ignore[index]
    for run in runs:
        print(f"\n{run.way}\n  minute  updates  tokens/s    memory")
        for minute, (before, after) in enumerate(zip(run.looks, run.looks[1:], strict=False), 1):
            rate = (after.tokens - before.tokens) / max(after.seconds - before.seconds, 1e-9)
            print(f"  {minute:6} {after.n_updates:8,} {rate:9,.0f} {after.resident_mb:6,.0f} MB")


def _watch(runs: list[Run], minutes: int) -> None:
    for run in runs:
        run.wait_for_its_beginning()
    for _ in range(minutes):
        time.sleep(60)
        for run in runs:
            run.look()


if __name__ == "__main__":
    main()
