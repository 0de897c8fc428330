"""Worker processes that train on request: one per system, since allocator settings apply to a process.

All are started with the same environment. OpenMP's wait policy is the default: its threads stop spinning a few
milliseconds after the work, so that an idle process leaves the cores to the others. After each turn a process returns
its freed memory, whatever its allocator settings; else all peaks together would have to fit into memory. The first two
updates of each turn, which allocate it again, are not counted.
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

N_UNCOUNTED = 2  # warm-up updates of each turn

MessageT = TypeVar("MessageT", int, "Turn")


class WorkerError(Exception):
    """A system could not be built or trained."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The measurement of some updates of one system."""

    n_tgt_tokens: int
    seconds: float
    peak_memory_mb: float  # of the process since its start

    @property
    def tokens_per_s(self) -> float:
        """Real target tokens per second, EOS included."""
        return self.n_tgt_tokens / self.seconds


class Worker:
    """A system in its own process, which sleeps between turns. It is built in the background."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(setup, theirs), daemon=True)
        self._process.start()
        theirs.close()  # so that recv raises EOFError if the process dies
        self._n_parameters: int | None = None

    @property
    def n_parameters(self) -> int:
        """The number of trainable parameters; waits until the system is built."""
        if self._n_parameters is None:
            self._n_parameters = self._receive(int)
        return self._n_parameters

    def train(self, n_updates: int) -> Turn:
        """Run the warm-up updates and ``n_updates`` more, and measure the latter."""
        assert self.n_parameters
        try:
            self._pipe.send(n_updates)
        except BrokenPipeError:
            self._raise_exit_status()
        return self._receive(Turn)

    def _receive(self, kind: type[MessageT]) -> MessageT:
        try:
            message = self._pipe.recv()
        except EOFError:
            self._raise_exit_status()
        if not isinstance(message, kind):
            raise WorkerError(f"{self.setup.name}: {message}")
        return message

    def _raise_exit_status(self) -> NoReturn:
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
    """Called before each update: blocks until the system's turn."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._n_counted = self._n_left = 0
        self._started, self._tokens_before = 0.0, 0

    def __call__(self, n_tgt_tokens: int) -> None:
        """Wait for the turn. Raises EOFError when the parent has closed the pipe."""
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
        _return_freed_memory()
        self._pipe.send(turn)


def _return_freed_memory() -> None:
    """Return freed memory to the system; without glibc, do nothing."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None
    if malloc_trim is not None:
        malloc_trim(0)


def _work(setup: Setup, pipe: Connection) -> None:
    """Run the worker process."""
    import torch

    os.dup2(2, 1)  # output of libraries must not mix with the result
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
