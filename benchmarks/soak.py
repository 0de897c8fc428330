"""Memory and equality of outputs while a loaded model translates for a long time.

    python benchmarks/soak.py MODEL [--minutes 60] [--lines 300] [--precision int8] [--json]

The same lines, of one to eight sentences, are translated over and over in two ways at the same time, each in its own
process with one thread:

- ``translator``: one ``Translator``; each pass reads the lines in another order, so that batches have ever new shapes;
- ``command``: ``transduce translate`` with one endless stream on stdin.

Every output must equal the first one of its line. The resident memory of both processes is sampled each minute
(``--every``). Exit status 1 if an output differs. Linux only: reads ``/proc``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from random import Random
from typing import IO

from machine import machine

SEED = 1
MAX_SENTENCES = 8  # of a line
BUFFER_LINES = 200  # of the command


@dataclass(slots=True)
class Stream:
    """What is known of one process: its memory over time and the outputs that it has written."""

    process: subprocess.Popen[str]
    n_lines: int = 0
    n_different: int = 0
    resident_mb: list[float] = field(default_factory=list)
    lines_so_far: list[int] = field(default_factory=list)  # at each sample

    def sample(self) -> None:
        """Record the resident memory. Raises RuntimeError if the process has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(f"a process ended with exit status {self.process.returncode}; see above")
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        self.resident_mb.append(round(int(line.split()[1]) * 1024 / 1e6, 1))
        self.lines_so_far.append(self.n_lines)

    def as_json(self) -> dict[str, object]:
        """The figures without the process."""
        return {
            "lines": self.n_lines,
            "different_outputs": self.n_different,
            "resident_mb": self.resident_mb,
            "lines_so_far": self.lines_so_far,
        }


def make_lines(n: int) -> list[str]:
    """Return lines of the built-in grammar, of one to ``MAX_SENTENCES`` sentences."""
    from transduce.corpora import generate_pairs

    random = Random(SEED)
    sentences = (pair.en for pair in generate_pairs("test", n_pairs=n * MAX_SENTENCES, seed=SEED))
    return [" ".join(next(sentences) for _ in range(random.randint(1, MAX_SENTENCES))) for _ in range(n)]


def serve(model: str, precision: str) -> None:
    """Translate batches of lines from stdin, JSON lists, one a line, with one ``Translator``."""
    from transduce.cli.machine import keep_freed_memory
    from transduce.inference import Translator

    keep_freed_memory()  # as the command does
    translator = Translator.load(model, precision=precision)  # type: ignore[arg-type]
    for batch in sys.stdin:
        print(json.dumps(translator.translate(json.loads(batch))), flush=True)


def start(arguments: list[str]) -> Stream:
    """Start a process with one thread."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return Stream(process)


def run_translator(stream: Stream, lines: list[str], stop: threading.Event) -> None:
    """Pass the lines in a new order each time, and compare."""
    random, first = Random(SEED), dict[str, str]()
    stdin, stdout = _pipes(stream)
    while not stop.is_set():
        order = random.sample(lines, len(lines))
        stdin.write(json.dumps(order) + "\n")
        stdin.flush()
        for line, output in zip(order, json.loads(stdout.readline()), strict=True):
            stream.n_lines += 1
            stream.n_different += first.setdefault(line, output) != output
    stdin.close()


def run_command(stream: Stream, lines: list[str], stop: threading.Event) -> None:
    """Feed the endless stream, and compare."""
    first: dict[str, str] = {}
    stdin, stdout = _pipes(stream)

    def feed() -> None:
        for line in cycle(lines):
            if stop.is_set():
                break
            stdin.write(line + "\n")
        stdin.close()

    threading.Thread(target=feed, daemon=True).start()
    for line, output in zip(cycle(lines), stdout, strict=False):
        stream.n_lines += 1
        stream.n_different += first.setdefault(line, output) != output


def _pipes(stream: Stream) -> tuple[IO[str], IO[str]]:
    assert stream.process.stdin is not None
    assert stream.process.stdout is not None
    return stream.process.stdin, stream.process.stdout


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Translate for a long time; watch memory and outputs.")
    parser.add_argument("model", help="model folder of a translation model")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=60.0, metavar="SECONDS", help="time between two samples")
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--precision", default="int8", choices=["fp32", "bf16", "int8"])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.model, arguments.precision)
        return
    lines = make_lines(arguments.lines)
    options = [arguments.model, "--precision", arguments.precision]
    command = ["-m", "transduce", "translate", *options, "--buffer", str(BUFFER_LINES)]
    streams = {"translator": start([__file__, *options, "--serve"]), "command": start(command)}
    stop = threading.Event()
    runners = {"translator": run_translator, "command": run_command}
    threads = [threading.Thread(target=runners[name], args=(stream, lines, stop)) for name, stream in streams.items()]
    for thread in threads:
        thread.daemon = True
        thread.start()
    try:
        for _ in range(max(1, round(arguments.minutes * 60 / arguments.every))):
            time.sleep(arguments.every)
            for stream in streams.values():
                stream.sample()
    finally:
        stop.set()
        for thread in threads:  # both finish the lines that they have read
            thread.join(timeout=60)
        for stream in streams.values():
            stream.process.terminate()
            stream.process.wait()
    report(streams, every_s=arguments.every, is_json=arguments.json)


def report(streams: dict[str, Stream], *, every_s: float, is_json: bool) -> None:
    """Print the samples of both processes; exit with status 1 if an output differs."""
    if is_json:
        figures: dict[str, object] = {name: stream.as_json() for name, stream in streams.items()}
        print(json.dumps(figures | {"sample_every_s": every_s, "machine": machine()}))
    else:
        for name, stream in streams.items():
            print(f"{name}: {stream.n_lines:,} lines, {stream.n_different:,} outputs differ from the first")
            for number, (memory, done) in enumerate(zip(stream.resident_mb, stream.lines_so_far, strict=True), 1):
                print(f"  {number * every_s / 60:7.1f} min  {memory:8,.0f} MB  {done:12,} lines")
    if any(stream.n_different for stream in streams.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
