"""Batching across requests: a bounded queue for each model, emptied in batches.

A batch is begun when enough jobs wait, or when the first has waited for ``max_wait_s``; the clients of the last batch
have a moment to come back, so that the next is as large. Where several threads compute, the jobs are shared out among
those that have nothing to do. Jobs are of one kind, so that one call of the model does them, and of similar length, so
that little of it is padding; the most urgent job is always among them. Long requests take turns, sentence by sentence.
Brief ones have batches of their own, to which those of long requests give way while they are done
(``compute_threads.py``).
"""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from transduce.serving.compute_threads import ComputeThreads, Urgency

__all__ = ["BatchObserver", "Batcher", "Closed", "DeadlineExceeded", "Job", "QueueFull", "TooLong"]

MAX_BATCH, MAX_WAIT_S, CAPACITY = 32, 0.010, 1024
RETURN_SHARE = 0.05  # of the time of a batch, which its clients have to come back for the next
BRIEF = 8  # jobs: a request with more is a long one
CANDIDATES = 4  # times the size of a batch: among so many of the most urgent jobs it is chosen by length
MAX_RETRY_S = 60
RATE_MEMORY = 0.9  # of the running mean of jobs a second
MIN_BATCHES, MAX_BATCHES = 3, 6  # by the last full ones times are predicted
FULL_BATCH = 16  # jobs: with fewer, the time of a job says little
JOB_LENGTH = 20  # characters: what a job takes besides those that it has


class QueueFull(Exception):
    """There is no room for more jobs."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"the queue is full; try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class DeadlineExceeded(Exception):
    """The jobs of a request were not done in time: ``n_done`` of ``n_jobs``."""

    def __init__(self, n_done: int, n_jobs: int) -> None:
        super().__init__(f"{n_done:,} of {n_jobs:,} jobs were done in time")
        self.n_done, self.n_jobs = n_done, n_jobs


class TooLong(Exception):
    """A request takes longer than it may, even alone: it has ``n_jobs``, and about ``n_possible`` are done in time."""

    def __init__(self, n_jobs: int, n_possible: int, timeout_s: float) -> None:
        super().__init__(f"{n_jobs:,} jobs, about {n_possible:,} are done within {timeout_s:g} s")
        self.n_jobs, self.n_possible, self.timeout_s = n_jobs, n_possible, timeout_s


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
    """What is told about batches; called in the threads that form them."""

    def batch(self, n_jobs: int, seconds: float) -> None:
        """A batch is done."""

    def dropped(self, reason: str) -> None:
        """A job was left out: ``cancelled``, ``deadline`` or ``too long``."""


@dataclass(slots=True, eq=False)
class _Request:
    """What the jobs of one request share."""

    n_jobs: int
    whole_work: float  # in characters
    timeout_s: float
    work: float  # that has not begun
    arrived: float = field(default_factory=time.monotonic)
    n_done: int = 0


@dataclass(slots=True, eq=False)
class _Waiting(Generic[JobT]):
    job: JobT
    request: _Request
    due: float  # the round in which it is served
    future: Future[Any] = field(default_factory=Future)


@dataclass(slots=True, eq=False)
class _Former:
    """A thread that forms batches, and waits until they are done."""

    n_before: int = 0  # jobs of its last batch
    free_at: float = 0.0  # when the clients of that have come back


@dataclass(slots=True, eq=False)
class _Lane(Generic[JobT]):
    """The waiting jobs of one urgency. In each round, each request has a turn."""

    waiting: list[_Waiting[JobT]] = field(default_factory=list)
    round: float = 0.0
    formers: list[_Former] = field(default_factory=list)

    def requests(self) -> dict[_Request, int]:
        """Return the requests and how many of their jobs wait."""
        return Counter(each.request for each in self.waiting)


class _Pace:
    """How fast jobs of one type are done: the best of the last full batches, since the first ones are slow."""

    def __init__(self) -> None:
        self._s_per_character = deque[float](maxlen=MAX_BATCHES)

    def measure(self, jobs: Sequence[Job], seconds: float) -> None:
        """Take a full batch into account."""
        self._s_per_character.append(seconds / _work_of(jobs))

    def seconds(self, work: float) -> float:
        """Return how long so many characters take at least; 0 until enough was measured."""
        return work * min(self._s_per_character) if len(self._s_per_character) >= MIN_BATCHES else 0.0


def _work_of(jobs: Sequence[Job]) -> float:
    return float(sum(JOB_LENGTH + job.length for job in jobs))


class Batcher(Generic[JobT]):
    """A queue of jobs and the threads that form batches of them, which are done in those that compute."""

    def __init__(
        self,
        run: Callable[[Sequence[JobT]], Sequence[Any]],
        *,
        name: str,
        compute: ComputeThreads,
        observer: BatchObserver,
        max_batch: int = MAX_BATCH,
        max_wait_s: float = MAX_WAIT_S,
        capacity: int = CAPACITY,
        urgencies: Sequence[Urgency] = (Urgency.BRIEF, Urgency.LONG),
    ) -> None:
        """``run`` does jobs of one kind and returns their results, in order. It is called in the thread ``compute``.

        ``capacity`` is the greatest number of waiting jobs of one urgency; a request counts with one batch at most.
        ``urgencies``: of brief requests and of long ones; the same for all if there is one.
        """
        self._run, self._compute, self._observer = run, compute, observer
        self._max_batch, self._max_wait_s, self._capacity = max_batch, max_wait_s, capacity
        self._lanes = {urgency: _Lane[JobT]() for urgency in urgencies}
        self._condition = threading.Condition()
        self._is_closed = False
        self._paces = defaultdict[type, _Pace](_Pace)
        self._rate = 0.0  # jobs a second while working
        self._name, self._threads = name, list[threading.Thread]()
        self.use(1)

    def use(self, n: int) -> None:
        """Form batches for ``n`` threads that compute, or as many as before."""
        for urgency, lane in self._lanes.items():
            for former in [_Former() for _ in range(len(lane.formers), n)]:
                with self._condition:
                    lane.formers.append(former)
                thread = threading.Thread(target=self._work, args=(urgency, lane, former), name=self._name, daemon=True)
                self._threads.append(thread)
                thread.start()

    @property
    def n_waiting(self) -> int:
        """The number of waiting jobs."""
        return sum(len(lane.waiting) for lane in self._lanes.values())

    def submit(self, jobs: Sequence[JobT], *, timeout_s: float = math.inf) -> list[Future[Any]]:
        """Queue the jobs of one request, all or none; return their futures, which may be cancelled.

        A job that has not begun after ``timeout_s`` fails with DeadlineExceeded; all fail with TooLong as soon as it is
        known that they cannot be done by then. Raises QueueFull, TooLong, Closed, or DeadlineExceeded without time.
        """
        if timeout_s <= 0:
            raise DeadlineExceeded(0, len(jobs))
        work = _work_of(jobs)
        request = _Request(len(jobs), work, timeout_s, work)
        lane = self._lanes[min(self._lanes) if len(jobs) <= BRIEF else max(self._lanes)]
        pace = self._paces[type(jobs[0])]
        with self._condition:
            if self._is_closed:
                raise Closed("the server is stopping")
            self._require_possible(request, pace)
            self._require_room(request, lane, pace)
            added = [_Waiting(job, request, lane.round + index) for index, job in enumerate(jobs)]
            lane.waiting += added
            self._condition.notify_all()
        return [each.future for each in added]

    def close(self, timeout_s: float | None = None) -> None:
        """Take no more jobs, do those that wait, and end the threads."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        for thread in self._threads:
            thread.join(timeout_s)

    def _require_possible(self, request: _Request, pace: _Pace) -> None:
        """Raise TooLong if a request, even alone, takes longer than it may, and is not nearly done."""
        predicted_s = pace.seconds(request.whole_work)
        left_s = request.timeout_s - (time.monotonic() - request.arrived)
        if predicted_s > request.timeout_s and pace.seconds(request.work) > left_s:
            n_possible = max(1, int(request.n_jobs * request.timeout_s / predicted_s))
            raise TooLong(request.n_jobs, n_possible, request.timeout_s)

    def _require_room(self, request: _Request, lane: _Lane[JobT], pace: _Pace) -> None:
        """Raise QueueFull if too many jobs wait, or if those of others, in turns, make a request too late."""
        others = lane.requests()
        n_counted = sum(min(n, self._max_batch) for n in others.values())
        excess = n_counted + min(request.n_jobs, self._max_batch) - self._capacity
        if n_counted and excess > 0:
            raise QueueFull(_retry_after_s(excess / self._rate if self._rate else 0.0))
        work = request.work + sum(min(request.work, other.work) for other in others)
        late_s = pace.seconds(work) - request.timeout_s
        if late_s > 0:
            raise QueueFull(_retry_after_s(late_s))

    def _work(self, urgency: Urgency, lane: _Lane[JobT], former: _Former) -> None:
        while batch := self._next_batch(lane, former):
            started = [each for each in batch if each.future.set_running_or_notify_cancel()]
            for _ in range(len(batch) - len(started)):
                self._observer.dropped("cancelled")
            former.n_before = len(started)
            if not started:
                former.free_at = 0.0
                continue
            seconds = self._compute.run(partial(self._timed, started), urgency=urgency)
            own_s = seconds / len(lane.formers)  # as if all threads had worked at it
            jobs = [each.job for each in started]
            with self._condition:
                former.free_at = time.monotonic() + RETURN_SHARE * seconds
                rate = len(jobs) / max(own_s, 1e-6)
                self._rate = rate if not self._rate else RATE_MEMORY * self._rate + (1 - RATE_MEMORY) * rate
                if len(jobs) >= min(self._max_batch, FULL_BATCH):
                    self._paces[type(jobs[0])].measure(jobs, own_s)
            self._observer.batch(len(jobs), seconds)

    def _timed(self, batch: Sequence[_Waiting[JobT]]) -> float:
        """Do jobs; return the seconds they took, without those that were given to more urgent work."""
        begun = time.monotonic()
        self._do(batch)
        return time.monotonic() - begun - self._compute.given_s

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
            each.request.n_done += 1
            each.future.set_result(result)

    def _next_batch(self, lane: _Lane[JobT], former: _Former) -> list[_Waiting[JobT]]:
        """Wait for jobs and take a batch; empty if the queue is closed and done."""
        with self._condition:
            while True:
                self._drop_hopeless(lane)
                if not lane.waiting:
                    if self._is_closed:
                        return []
                    self._condition.wait()
                    continue
                first = min(lane.waiting, key=lambda each: each.due)
                alike = [each for each in lane.waiting if each.job.kind == first.job.kind]
                now, due = time.monotonic(), first.request.arrived + self._max_wait_s
                if len(alike) < former.n_before:
                    due = max(due, former.free_at)
                remaining_s = due - now
                if len(alike) >= self._max_batch or remaining_s <= 0 or self._is_closed:
                    break
                self._condition.wait(remaining_s)
            n_free = max(1, sum(each.free_at <= now for each in lane.formers))
            batch = self._choose(first, alike, min(self._max_batch, math.ceil(len(alike) / n_free)))
            former.free_at = math.inf
            taken = set(map(id, batch))
            lane.waiting = [each for each in lane.waiting if id(each) not in taken]
            lane.round = max(lane.round, first.due)
            for each in batch:
                each.request.work -= _work_of([each.job])
            return batch

    def _choose(self, first: _Waiting[JobT], alike: list[_Waiting[JobT]], size: int) -> list[_Waiting[JobT]]:
        """Choose, among the most urgent jobs, the first and those nearest to it in length: ``size`` in all."""
        urgent = heapq.nsmallest(CANDIDATES * self._max_batch, alike, key=lambda each: each.due)
        by_length = sorted(urgent, key=lambda each: each.job.length)
        place = by_length.index(first)
        starts = range(max(0, place - size + 1), min(place, len(by_length) - size) + 1)
        lengths = [each.job.length for each in by_length]
        start = min(starts, key=lambda start: lengths[start + size - 1] - lengths[start])
        return by_length[start : start + size]

    def _drop_hopeless(self, lane: _Lane[JobT]) -> None:
        """Leave out cancelled jobs, and those of requests that are too late or too long."""
        failures, kept = self._failures(lane), list[_Waiting[JobT]]()
        for each in lane.waiting:
            if each.future.cancelled():
                each.future.set_running_or_notify_cancel()
                self._observer.dropped("cancelled")
            elif error := failures.get(each.request):
                if each.future.set_running_or_notify_cancel():
                    each.future.set_exception(error)
                self._observer.dropped("deadline" if isinstance(error, DeadlineExceeded) else "too long")
            else:
                kept.append(each)
        lane.waiting = kept

    def _failures(self, lane: _Lane[JobT]) -> dict[_Request, Exception]:
        """Return the requests that can no longer be answered in time."""
        failures: dict[_Request, Exception] = {}
        now = time.monotonic()
        for request, job in {each.request: each.job for each in lane.waiting}.items():
            if request.arrived + request.timeout_s < now:
                failures[request] = DeadlineExceeded(request.n_done, request.n_jobs)
                continue
            try:
                self._require_possible(request, self._paces[type(job)])
            except TooLong as error:
                failures[request] = error
        return failures


def _retry_after_s(seconds: float) -> int:
    return min(MAX_RETRY_S, max(1, math.ceil(seconds)))
