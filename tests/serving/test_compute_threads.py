"""The threads in which models compute: the order of work, long work that gives way, errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from transduce.inference.threads import n_usable_threads
from transduce.serving import compute_threads
from transduce.serving.compute_threads import ComputeThreads, Urgency, in_new_thread

BRIEF, LONG, GENERATION = Urgency


def ask(compute: ComputeThreads, work: Callable[[], object], urgency: Urgency) -> threading.Thread:
    """Ask in another thread, and wait until the work waits or has begun."""
    n_waiting = compute.n_waiting
    thread = threading.Thread(target=compute.run, args=(work,), kwargs={"urgency": urgency})
    thread.start()
    while compute.n_waiting <= n_waiting and thread.is_alive():
        time.sleep(0.001)
    return thread


@pytest.mark.parametrize("own", Urgency)
def test_work_gives_way_to_what_is_more_urgent_in_order(own: Urgency) -> None:
    compute, order, threads = ComputeThreads(), list[tuple[Urgency, int] | None](), list[threading.Thread]()
    asked = [(urgency, n) for urgency in reversed(Urgency) for n in range(2)]

    def work() -> int:
        for each in asked:
            threads.append(ask(compute, lambda each=each: order.append(each), each[0]))  # type: ignore[misc]
        compute.give_way()
        order.append(None)
        return threading.get_ident()

    where = compute.run(work, urgency=own)
    assert compute.run(threading.get_ident, urgency=GENERATION) == where != threading.get_ident()
    for thread in threads:
        thread.join(10)
    assert order == [
        *sorted(each for each in asked if each[0] < own),
        None,
        *sorted(each for each in asked if each[0] >= own),
    ]


def test_work_that_gives_way_has_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much more urgent work there is."""
    monkeypatch.setattr(compute_threads, "GIVEN_SHARE", 2.0)
    compute, is_over, given = ComputeThreads(), threading.Event(), list[float]()

    def brief() -> None:
        while not is_over.is_set():
            compute.run(lambda: time.sleep(0.002))

    def long() -> float:
        begun = time.monotonic()
        for _ in range(20):
            time.sleep(0.002)
            compute.give_way()
        given.append(compute.given_s)
        return time.monotonic() - begun

    threads = [threading.Thread(target=brief) for _ in range(3)]
    for thread in threads:
        thread.start()
    all_s = compute.run(long, urgency=LONG)
    is_over.set()
    for thread in threads:
        thread.join(10)
    assert 0 < given[0] < 0.75 * all_s  # two thirds, and the last piece


def test_nothing_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute_threads, "PATIENCE_S", 0.05)
    compute, is_over = ComputeThreads(), threading.Event()

    def brief() -> None:
        while not is_over.is_set():
            compute.run(lambda: time.sleep(0.002))

    threads = [threading.Thread(target=brief) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    compute.run(lambda: None, urgency=GENERATION)
    assert time.monotonic() - begun < 5
    is_over.set()
    for thread in threads:
        thread.join(10)


def test_several_threads_compute_at_once_and_each_alone() -> None:
    compute, all_there, seen = ComputeThreads(), threading.Barrier(3), list[int]()
    assert compute.run(n_usable_threads) == n_usable_threads()
    compute.use(3)

    def work() -> int:
        all_there.wait(10)
        seen.append(n_usable_threads())
        return threading.get_ident()

    where = set[int]()
    threads = [threading.Thread(target=lambda: where.add(compute.run(work))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert (len(where), seen) == (3, [1, 1, 1])


def test_nobody_gives_way_in_another_thread() -> None:
    ComputeThreads().give_way()


def test_an_error_is_that_of_who_asked() -> None:
    compute = ComputeThreads()
    with pytest.raises(ZeroDivisionError):
        compute.run(lambda: 1 // 0)
    assert compute.run(lambda: 2) == 2
    with pytest.raises(ZeroDivisionError):
        in_new_thread(lambda: 1 // 0)
    assert in_new_thread(lambda: 3) == 3
