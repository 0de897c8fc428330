"""The queue: batches, order, deadlines, cancellation, bounds, failures, the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass

import pytest

from transduce.serving.batching import Batcher, Closed, DeadlineExceeded, QueueFull
from transduce.serving.compute_thread import ComputeThread


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
    return Batcher(model, name="test", compute=ComputeThread(), observer=model, **options)  # type: ignore[arg-type]


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
    batcher = made(model, max_batch=4, max_wait_s=0.001)
    batcher.submit([Task(0)])
    assert model.entered.wait(10)
    batcher.submit([Task(n) for n in range(1, 101)])
    time.sleep(0.02)
    batcher.submit([Task(999)])
    model.gate.set()
    batcher.close(10)
    place = next(index for index, batch in enumerate(model.batches) if Task(999) in batch)
    assert place <= 3
    assert sum(map(len, model.batches)) == 102


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
    busy.submit([Task(n) for n in range(6)])
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
