"""Turns: how ``whole_run.py`` trains systems in processes of their own, one at a time.

The parent sends a command as a line of JSON to a system's standard input, the system answers with a line of JSON on its
standard output. A system waits for its turn before its first update, trains until its own clock shows the end of the
turn, answers, and waits for the next command at no cost. Its clock stands still while it waits or is evaluated. This
module imports only the standard library and ``machine.py``, so the Python of any library can run it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from machine import memory_mb, peak_memory_mb

__all__ = ["Ended", "SystemFailed", "SystemProcess", "Turns"]


class Ended(Exception):
    """The parent needs no further updates."""


class SystemFailed(Exception):
    """A system could not be built or trained."""


class Turns:
    """The system's side: called before each update with the target tokens so far; blocks until it may run."""

    def __init__(
        self,
        evaluate: Callable[[], tuple[float, int]],
        progress: Callable[[], Mapping[str, float]],
        *,
        sample_every_s: float,
    ) -> None:
        """``evaluate`` returns the summed negative log-likelihood (nats) of the dev tokens, and their number.

        ``progress`` returns numbers for the answer at the end of a turn, such as the updates so far.
        """
        self._evaluate, self._progress, self._sample_every_s = evaluate, progress, sample_every_s
        self._waited_s = 0.0  # the clock's zero; moves on while the system waits
        self._until_s = 0.0  # the end of the turn; 0 before the first
        self._samples: list[tuple[float, int, float]] = []  # own seconds, tokens, memory in MB
        self._next_sample_s = 0.0
        # Results go to the original standard output; what libraries print goes to standard error.
        self._answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def clock(self) -> float:
        """Return the seconds of this system's own turns."""
        return time.perf_counter() - self._waited_s if self._until_s > 0 else 0.0

    def ready(self, **about: object) -> None:
        """Tell the parent that the system is built, with a description."""
        self._answer(about)

    def __call__(self, n_tgt_tokens: int) -> None:
        """Wait for the turn. Raises ``Ended`` when the parent closes the pipe."""
        now = self.clock()
        is_over = now >= self._until_s
        if now >= self._next_sample_s or is_over:
            self._samples.append((now, n_tgt_tokens, memory_mb()))
            self._next_sample_s = now + self._sample_every_s
        if is_over:
            self._wait(now, n_tgt_tokens)

    def _wait(self, now: float, n_tgt_tokens: int) -> None:
        """Answer the last command, then obey commands until one gives time to train."""
        if self._until_s > 0:
            self._report(now, n_tgt_tokens)
        while now >= self._until_s:
            line = sys.stdin.readline()
            if not line:
                raise Ended
            command = json.loads(line)
            if "until_s" in command:
                self._until_s = command["until_s"]
                if now >= self._until_s:  # the last turn ended so late that it used up this one
                    self._report(now, n_tgt_tokens)
            else:
                nll_nats, n_tokens = self._evaluate()
                self._answer({"nll_nats": nll_nats, "n_tokens": n_tokens})
        self._waited_s = time.perf_counter() - now

    def _report(self, now: float, n_tgt_tokens: int) -> None:
        done = {"own_s": now, "tgt_tokens": n_tgt_tokens, "peak_memory_mb": peak_memory_mb()}
        self._answer({**done, "samples": self._samples, **self._progress()})
        self._samples = []

    def _answer(self, values: Mapping[str, object]) -> None:
        print(json.dumps(values), file=self._answers, flush=True)


class SystemProcess:
    """The parent's side: a system in its own process, which is built in the background and sleeps between turns."""

    def __init__(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (closed by __exit__)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=os.environ | dict(environment or {}),
        )
        self._about: dict[str, Any] | None = None

    @property
    def about(self) -> dict[str, Any]:
        """The description of the system; waits until it is built."""
        if self._about is None:
            self._about = self._receive()
        return self._about

    def train(self, until_s: float) -> dict[str, Any]:
        """Train until the system's clock shows ``until_s``; return what it has done."""
        return self._ask({"until_s": until_s})

    def evaluate(self) -> tuple[float, int]:
        """Return the summed negative log-likelihood (nats) of the dev tokens, and their number."""
        answer = self._ask({"evaluate": True})
        return answer["nll_nats"], answer["n_tokens"]

    def _ask(self, command: Mapping[str, object]) -> dict[str, Any]:
        assert self.about is not None  # wait until it is built
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the process has died; reading tells how
            print(json.dumps(command), file=self._process.stdin, flush=True)
        return self._receive()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._log.seek(0)
            last = next((line.strip() for line in reversed(self._log.readlines()) if line.strip()), "no message")
            raise SystemFailed(f"{self.name} ended with exit status {status}: {last}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()
