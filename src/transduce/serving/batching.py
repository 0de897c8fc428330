"""Batching across requests: a bounded queue for each model, and a thread that empties it in batches.

A batch is begun when enough jobs wait, or when the oldest has waited for ``max_wait_s``. Jobs are of one kind, so that
one call of the model does them, and of similar length, so that little of it is padding; the most urgent job is always
among them. A request with many jobs counts as if they had arrived one after another, so it delays others little.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from transduce.serving.compute_thread import ComputeThread

__all__ = ["BatchObserver", "Batcher", "Closed", "DeadlineExceeded", "Job", "QueueFull"]

MAX_BATCH, MAX_WAIT_S, CAPACITY = 32, 0.010, 1024
SPACING_S = 0.010  # between the jobs of one request, in the order of service
CANDIDATES = 4  # times the size of a batch: among so many of the most urgent jobs it is chosen by length
MAX_RETRY_S = 60
RATE_MEMORY = 0.9  # of the running mean of jobs a second


class QueueFull(Exception):
    """There is no room for more jobs."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"the queue is full; try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class DeadlineExceeded(Exception):
    """A job has waited too long and was left out."""


class Closed(Exception):
    """The server is stopping and takes no more jobs."""


class Job(Protocol):
    """What one call of a model does for one sentence."""

    @property
    def kind(self) -> Hashable:
        """Jobs of one kind may be done together."""

    @property
    def length(self) -> int:
        """A measure of the work, such as characters."""


JobT = TypeVar("JobT", bound=Job)


class BatchObserver(Protocol):
    """What is told about batches; called in the thread that forms them."""

    def batch(self, n_jobs: int, seconds: float) -> None:
        """A batch is done."""

    def dropped(self, reason: str) -> None:
        """A job was left out: ``cancelled`` or ``deadline``."""


@dataclass(slots=True, eq=False)
class _Waiting(Generic[JobT]):
    job: JobT
    future: Future[Any]
    arrived: float
    due: float  # the order of service
    deadline: float


class Batcher(Generic[JobT]):
    """A queue of jobs and the thread that forms batches of them, which are done in the compute thread."""

    def __init__(
        self,
        run: Callable[[Sequence[JobT]], Sequence[Any]],
        *,
        name: str,
        compute: ComputeThread,
        observer: BatchObserver,
        max_batch: int = MAX_BATCH,
        max_wait_s: float = MAX_WAIT_S,
        capacity: int = CAPACITY,
    ) -> None:
        """``run`` does jobs of one kind and returns their results, in order. It is called in the thread ``compute``.

        ``capacity`` is the greatest number of waiting jobs; a request alone may have more.
        """
        self._run, self._compute, self._observer = run, compute, observer
        self._max_batch, self._max_wait_s, self._capacity = max_batch, max_wait_s, capacity
        self._waiting: list[_Waiting[JobT]] = []
        self._condition = threading.Condition()
        self._is_closed = False
        self._rate = 0.0  # jobs a second while working
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def n_waiting(self) -> int:
        """The number of waiting jobs."""
        return len(self._waiting)

    def submit(self, jobs: Sequence[JobT], *, timeout_s: float = math.inf) -> list[Future[Any]]:
        """Queue the jobs of one request, all or none; return their futures, which may be cancelled.

        A job that has not begun after ``timeout_s`` fails with DeadlineExceeded. Raises QueueFull or Closed.
        """
        now = time.monotonic()
        with self._condition:
            if self._is_closed:
                raise Closed("the server is stopping")
            if self._waiting and len(self._waiting) + len(jobs) > self._capacity:
                raise QueueFull(self._retry_after_s(len(jobs)))
            added = [
                _Waiting(job, Future[Any](), now, now + SPACING_S * index, now + timeout_s)
                for index, job in enumerate(jobs)
            ]
            self._waiting += added
            self._condition.notify()
        return [each.future for each in added]

    def close(self, timeout_s: float | None = None) -> None:
        """Take no more jobs, do those that wait, and end the thread."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()
        self._thread.join(timeout_s)

    def _retry_after_s(self, n_jobs: int) -> int:
        """Return after how many seconds there is probably room for so many jobs."""
        excess = len(self._waiting) + n_jobs - self._capacity
        return min(MAX_RETRY_S, max(1, math.ceil(excess / self._rate))) if self._rate else 1

    def _work(self) -> None:
        while batch := self._next_batch():
            started = [each for each in batch if each.future.set_running_or_notify_cancel()]
            for _ in range(len(batch) - len(started)):
                self._observer.dropped("cancelled")
            if not started:
                continue
            seconds = self._compute.run(partial(self._timed, started))
            rate = len(started) / max(seconds, 1e-6)
            self._rate = rate if not self._rate else RATE_MEMORY * self._rate + (1 - RATE_MEMORY) * rate
            self._observer.batch(len(started), seconds)

    def _timed(self, batch: Sequence[_Waiting[JobT]]) -> float:
        """Do jobs; return the seconds they took."""
        begun = time.monotonic()
        self._do(batch)
        return time.monotonic() - begun

    def _do(self, batch: Sequence[_Waiting[JobT]]) -> None:
        """Do jobs; if they fail together, each by itself, so that one cannot fail the others."""
        try:
            results = self._run([each.job for each in batch])
        except Exception as error:
            if len(batch) == 1:
                batch[0].future.set_exception(error)
                return
            for each in batch:
                self._do([each])
            return
        for each, result in zip(batch, results, strict=True):
            each.future.set_result(result)

    def _next_batch(self) -> list[_Waiting[JobT]]:
        """Wait for jobs and take a batch; empty if the queue is closed and done."""
        with self._condition:
            while True:
                self._drop_old()
                if not self._waiting:
                    if self._is_closed:
                        return []
                    self._condition.wait()
                    continue
                first = min(self._waiting, key=lambda each: each.due)
                alike = [each for each in self._waiting if each.job.kind == first.job.kind]
                remaining_s = first.arrived + self._max_wait_s - time.monotonic()
                if len(alike) >= self._max_batch or remaining_s <= 0 or self._is_closed:
                    break
                self._condition.wait(remaining_s)
            batch = self._choose(first, alike)
            taken = set(map(id, batch))
            self._waiting = [each for each in self._waiting if id(each) not in taken]
            return batch

    def _choose(self, first: _Waiting[JobT], alike: list[_Waiting[JobT]]) -> list[_Waiting[JobT]]:
        """Choose, among the most urgent jobs, the first and those nearest to it in length."""
        urgent = sorted(alike, key=lambda each: each.due)[: CANDIDATES * self._max_batch]
        by_length = sorted(urgent, key=lambda each: each.job.length)
        place, size = by_length.index(first), min(self._max_batch, len(by_length))
        starts = range(max(0, place - size + 1), min(place, len(by_length) - size) + 1)
        lengths = [each.job.length for each in by_length]
        start = min(starts, key=lambda start: lengths[start + size - 1] - lengths[start])
        return by_length[start : start + size]

    def _drop_old(self) -> None:
        """Leave out cancelled jobs and those whose deadline has passed."""
        now = time.monotonic()
        if not any(each.future.cancelled() or each.deadline < now for each in self._waiting):
            return
        kept = list[_Waiting[JobT]]()
        for each in self._waiting:
            if each.future.cancelled():
                each.future.set_running_or_notify_cancel()
                self._observer.dropped("cancelled")
            elif each.deadline < now:
                if each.future.set_running_or_notify_cancel():
                    each.future.set_exception(DeadlineExceeded("it has waited too long"))
                self._observer.dropped("deadline")
            else:
                kept.append(each)
        self._waiting = kept
