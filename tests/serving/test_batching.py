"""The queue: batches, order, deadlines, cancellation, bounds, failures, the end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.serving.batching import BRIEF, Batcher, Closed, DeadlineExceeded, QueueFull, TooLong
from transduce.serving.compute_threads import ComputeThreads


@dataclass(frozen=True)
class Task:
    name: int
    length: int = 1
    kind: str = "a"
    fails: bool = False


class Recorder:
    """A model that is slow on request, and remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[list[Task]] = []
        self.drops: list[str] = []
        self.gate = threading.Event()
        self.entered = threading.Event()

    def __call__(self, tasks: Sequence[Task]) -> list[int]:
        self.batches.append(list(tasks))
        self.entered.set()
        assert self.gate.wait(10)
        if any(task.fails for task in tasks):
            raise ValueError("a bad sentence")
        return [10 * task.name for task in tasks]

    def batch(self, n_jobs: int, seconds: float) -> None:
        assert seconds >= 0

    def dropped(self, reason: str) -> None:
        self.drops.append(reason)


@pytest.fixture
def model() -> Recorder:
    return Recorder()


def made(model: Recorder, **options: float) -> Batcher[Task]:
    return Batcher(model, name="test", compute=ComputeThreads(), observer=model, **options)  # type: ignore[arg-type]


@pytest.fixture
def busy(model: Recorder) -> Iterator[Batcher[Task]]:
    """A queue of four jobs at most to a batch, whose model is busy with a first one until the gate opens."""
    batcher = made(model, max_batch=4, max_wait_s=0.001, capacity=8)
    batcher.submit([Task(0)])
    assert model.entered.wait(10)
    yield batcher
    model.gate.set()
    batcher.close(10)


def test_results_come_to_their_jobs(model: Recorder, busy: Batcher[Task]) -> None:
    futures = [future for n in range(1, 8) for future in busy.submit([Task(n)])]
    model.gate.set()
    assert [future.result(10) for future in futures] == [10, 20, 30, 40, 50, 60, 70]
    assert [len(batch) for batch in model.batches] == [1, 4, 3]


def test_the_clients_of_a_batch_may_come_back_for_the_next(
    model: Recorder, busy: Batcher[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    futures = [future for n in range(3) for future in busy.submit([Task(n)])]
    monkeypatch.setattr("transduce.serving.batching.RETURN_SHARE", 1e6)
    model.gate.set()
    assert [future.result(10) for future in futures] == [0, 10, 20]
    [early] = busy.submit([Task(3)])
    time.sleep(0.05)
    assert len(model.batches) == 2  # others are awaited
    late = [future for n in (4, 5) for future in busy.submit([Task(n)])]
    assert [future.result(10) for future in (early, *late)] == [30, 40, 50]
    assert [len(batch) for batch in model.batches] == [1, 3, 3]


def test_threads_that_compute_share_out_the_jobs() -> None:
    model, compute = Recorder(), ComputeThreads()
    batcher = Batcher[Task](model, name="test", compute=compute, observer=model, max_batch=8, max_wait_s=0.2)
    compute.use(2)
    batcher.use(2)
    futures = [future for n in range(6) for future in batcher.submit([Task(n)])]
    while len(model.batches) < 2:  # both at once, since the gate is shut
        time.sleep(0.001)
    more = batcher.submit([Task(n) for n in range(6, 9)])
    model.gate.set()
    assert [future.result(10) for future in (*futures, *more)] == [10 * n for n in range(9)]
    assert [len(batch) for batch in model.batches[:2]] == [3, 3]
    batcher.close(10)


def test_a_batch_is_of_one_kind_and_of_similar_length(model: Recorder, busy: Batcher[Task]) -> None:
    lengths = [50, 3, 51, 2, 52, 1, 53]
    for n, length in enumerate(lengths, start=1):
        busy.submit([Task(n, length)])
    busy.submit([Task(9, 50, kind="b")])
    model.gate.set()
    busy.close(10)
    assert [sorted(task.length for task in batch) for batch in model.batches[1:]] == [[50, 51, 52, 53], [1, 2, 3], [50]]
    assert [task.length for task in model.batches[2]] == [1, 2, 3]


def test_the_oldest_is_never_left_behind(model: Recorder) -> None:
    """Though all others are of another length."""
    batcher = made(model, max_batch=2, max_wait_s=0.001)
    batcher.submit([Task(0)])
    assert model.entered.wait(10)
    batcher.submit([Task(1, 1000)])
    for n in range(2, 12):
        batcher.submit([Task(n, 1)])
    model.gate.set()
    batcher.close(10)
    assert Task(1, 1000) in model.batches[1]


def test_a_long_request_does_not_delay_a_short_one(model: Recorder) -> None:
    compute = ComputeThreads()
    batcher = Batcher[Task](model, name="test", compute=compute, observer=model, max_batch=4, max_wait_s=0.001)
    batcher.submit([Task(n) for n in range(100)])
    assert model.entered.wait(10)
    batcher.submit([Task(999)])
    deadline = time.monotonic() + 10
    while not compute.n_waiting:  # until its batch waits for the model
        assert time.monotonic() < deadline
        time.sleep(0.001)
    model.gate.set()
    batcher.close(10)
    assert model.batches[1] == [Task(999)]  # a batch of its own, which takes no longer than alone
    assert sum(map(len, model.batches)) == 101


@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(BRIEF + 1, 60), min_size=1, max_size=5), max_batch=st.integers(1, 9))
def test_long_requests_take_turns(sizes: list[int], max_batch: int) -> None:
    """At each moment those that are not finished have been served alike, to within a batch."""
    model = Recorder()
    batcher = made(model, max_batch=max_batch, max_wait_s=0.0)
    batcher.submit([Task(-1)] * (BRIEF + 1))
    assert model.entered.wait(10)
    for request, size in enumerate(sizes):
        batcher.submit([Task(request)] * size)
    model.gate.set()
    batcher.close(10)
    served = Counter[int]()
    for task in (task for batch in model.batches for task in batch if task.name >= 0):
        served[task.name] += 1
        unfinished = [served[request] for request, size in enumerate(sizes) if served[request] < size]
        if len(unfinished) > 1:
            assert max(unfinished) - min(unfinished) <= max_batch + 1
    assert served == Counter(dict(enumerate(sizes)))


def test_a_request_fills_the_queue_with_a_batch_at_most(model: Recorder, busy: Batcher[Task]) -> None:
    busy.submit([Task(n) for n in range(1000)])
    brief = [busy.submit([Task(n)])[0] for n in range(1000, 1008)]
    long = busy.submit([Task(n) for n in range(2000, 2020)])
    with pytest.raises(QueueFull):
        busy.submit([Task(3000)] * 20)
    model.gate.set()
    assert [each.result(10) for each in (*brief, *long)] == [10 * n for n in (*range(1000, 1008), *range(2000, 2020))]


class Steady:
    """A model that takes ten milliseconds for each task."""

    def __call__(self, tasks: Sequence[Task]) -> list[int]:
        time.sleep(0.01 * len(tasks))
        return [0] * len(tasks)

    def batch(self, n_jobs: int, seconds: float) -> None:
        pass

    def dropped(self, reason: str) -> None:
        assert reason in ("too long", "cancelled")


def test_what_cannot_be_done_in_time_is_refused_with_what_can() -> None:
    steady = Steady()
    batcher = Batcher[Task](steady, name="test", compute=ComputeThreads(), observer=steady, max_batch=16)
    begun = time.monotonic()
    late = batcher.submit([Task(1)] * 6000, timeout_s=20.0)  # its pace is not known yet
    with pytest.raises(TooLong):
        late[-1].result(20)
    with pytest.raises(TooLong) as refused:
        batcher.submit([Task(1)] * 6000, timeout_s=20.0)
    assert time.monotonic() - begun < 15
    assert (refused.value.n_jobs, refused.value.timeout_s) == (6000, 20.0)
    assert 0 < refused.value.n_possible <= 2000
    pace_s = 20.0 / refused.value.n_possible
    first = batcher.submit([Task(1)] * 300, timeout_s=100.0)
    with pytest.raises(QueueFull) as full:  # it is possible alone, but not in turns with the first
        batcher.submit([Task(1)] * 300, timeout_s=300 * 1.2 * pace_s)
    assert full.value.retry_after_s >= 1
    for future in first:
        future.cancel()


def test_it_waits_a_moment_for_more(model: Recorder) -> None:
    model.gate.set()
    batcher = made(model, max_batch=3, max_wait_s=5.0)
    begun = time.monotonic()
    futures = [future for n in range(3) for future in batcher.submit([Task(n)])]
    assert [future.result(10) for future in futures] == [0, 10, 20]
    assert time.monotonic() - begun < 4  # a full batch waits no longer
    assert [len(batch) for batch in model.batches] == [3]
    batcher.close(10)


def test_a_full_queue_refuses_all_or_nothing(model: Recorder, busy: Batcher[Task]) -> None:
    busy.submit([Task(n) for n in range(3)])
    busy.submit([Task(n) for n in range(3)])
    with pytest.raises(QueueFull) as refused:
        busy.submit([Task(7)] * 3)
    assert 1 <= refused.value.retry_after_s <= 60
    assert busy.n_waiting == 6
    busy.submit([Task(8)] * 2)


def test_a_request_larger_than_the_queue_is_taken_when_nothing_waits(model: Recorder, busy: Batcher[Task]) -> None:
    futures = busy.submit([Task(n) for n in range(50)])
    model.gate.set()
    assert len([future.result(10) for future in futures]) == 50


def test_cancelled_and_late_jobs_are_left_out(model: Recorder, busy: Batcher[Task]) -> None:
    [cancelled] = busy.submit([Task(1)])
    [late] = busy.submit([Task(2)], timeout_s=0.01)
    [kept] = busy.submit([Task(3)])
    assert cancelled.cancel()
    time.sleep(0.03)
    model.gate.set()
    assert kept.result(10) == 30
    with pytest.raises(CancelledError):
        cancelled.result(10)
    with pytest.raises(DeadlineExceeded):
        late.result(10)
    with pytest.raises(DeadlineExceeded):
        busy.submit([Task(4)], timeout_s=0.0)
    assert sorted(model.drops) == ["cancelled", "deadline"]
    assert [[task.name for task in batch] for batch in model.batches] == [[0], [3]]


def test_one_bad_job_fails_alone(model: Recorder, busy: Batcher[Task]) -> None:
    futures = [busy.submit([Task(n, fails=n == 2)])[0] for n in range(1, 5)]
    model.gate.set()
    assert [futures[n].result(10) for n in (0, 2, 3)] == [10, 30, 40]
    with pytest.raises(ValueError, match="bad sentence"):
        futures[1].result(10)


def test_closing_finishes_what_waits(model: Recorder, busy: Batcher[Task]) -> None:
    futures = busy.submit([Task(n) for n in range(5)])
    threading.Timer(0.05, model.gate.set).start()
    busy.close(10)
    assert all(future.done() for future in futures)
    with pytest.raises(Closed):
        busy.submit([Task(6)])
