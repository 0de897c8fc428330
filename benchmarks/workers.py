"""Processes that train when they are asked to: one for each system, as the memory allocator is set for a process.

All are started alike, with one environment. Nothing is said to OpenMP about waiting: its threads stop spinning some
milliseconds after the work, so that a process that was not asked leaves the cores to the others. It leaves them its
freed memory, too, whatever its allocator is set to, as else all processes together would need that of all their peaks;
the first two updates of each turn, which take memory anew, are not counted.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import sys
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import NoReturn, Self, TypeVar

from machine import peak_memory_mb
from systems import Setup, make_system

from transduce.cli.machine import keep_freed_memory

__all__ = ["Turn", "Worker", "WorkerError"]

N_UNCOUNTED = 2  # updates of each turn, before those that were asked for

MessageT = TypeVar("MessageT", int, "Turn")


class WorkerError(Exception):
    """A system could not be built or trained."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Some updates of one system."""

    n_tgt_tokens: int
    seconds: float
    peak_memory_mb: float  # of the process since it began

    @property
    def tokens_per_s(self) -> float:
        """Real target tokens, end symbols included."""
        return self.n_tgt_tokens / self.seconds


class Worker:
    """A system in a process of its own, asleep until it is asked. It is built while its maker goes on."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(setup, theirs), daemon=True)
        self._process.start()
        theirs.close()  # so that an end of the process is seen as an end of the pipe
        self._n_parameters: int | None = None

    @property
    def n_parameters(self) -> int:
        """Those that are trained; waits until the system is built."""
        if self._n_parameters is None:
            self._n_parameters = self._receive(int)
        return self._n_parameters

    def train(self, n_updates: int) -> Turn:
        """Let it do some more updates than this, and time all but the first of them."""
        assert self.n_parameters
        try:
            self._pipe.send(n_updates)
        except BrokenPipeError:
            self._say_how_it_ended()
        return self._receive(Turn)

    def _receive(self, kind: type[MessageT]) -> MessageT:
        try:
            message = self._pipe.recv()
        except EOFError:
            self._say_how_it_ended()
        if not isinstance(message, kind):
            raise WorkerError(f"{self.setup.name}: {message}")
        return message

    def _say_how_it_ended(self) -> NoReturn:
        self._process.join()
        status = self._process.exitcode
        raise WorkerError(f"{self.setup.name} ended with exit status {status}; is there enough memory?")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pipe.close()
        self._process.join(timeout=10)
        self._process.kill()


class _Pace:
    """Stands before each update: lets a system go on, or makes it wait for its turn."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._n_counted = self._n_left = 0
        self._started, self._tokens_before = 0.0, 0

    def __call__(self, n_tgt_tokens: int) -> None:
        """Raises EOFError when nobody will ask any more."""
        if self._n_left == 0:
            if self._n_counted:
                self._report(n_tgt_tokens)
            self._n_counted = self._pipe.recv()
            self._n_left = N_UNCOUNTED + self._n_counted
        if self._n_left == self._n_counted:
            self._started, self._tokens_before = time.perf_counter(), n_tgt_tokens
        self._n_left -= 1

    def _report(self, n_tgt_tokens: int) -> None:
        turn = Turn(n_tgt_tokens - self._tokens_before, time.perf_counter() - self._started, peak_memory_mb())
        _give_back_freed_memory()
        self._pipe.send(turn)


def _give_back_freed_memory() -> None:
    """To the system. Elsewhere than on glibc nothing is done."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None
    if malloc_trim is not None:
        malloc_trim(0)


def _work(setup: Setup, pipe: Connection) -> None:
    """What the process does."""
    import torch

    os.dup2(2, 1)  # what libraries print is not the result
    try:
        if setup.is_tuned:
            keep_freed_memory()
        torch.set_num_threads(setup.n_threads)
        system = make_system(setup)
        pipe.send(system.n_parameters)
        system.train(_Pace(pipe))
    except EOFError:
        return
    except Exception:
        pipe.send(traceback.format_exc())
