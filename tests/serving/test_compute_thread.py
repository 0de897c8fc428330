"""The one thread in which models compute: the order of work, long work that gives way, errors."""

from __future__ import annotations

import threading
import time

import pytest

from transduce.serving.compute_thread import ComputeThread, in_new_thread


def test_long_work_gives_way_to_what_waits_in_order() -> None:
    compute, order, threads = ComputeThread(), list[int](), list[threading.Thread]()

    def short(n: int) -> int:
        return compute.run(lambda: order.append(n) or threading.get_ident())

    def long() -> int:
        for n in range(5):
            threads.append(threading.Thread(target=short, args=(n,)))
            threads[-1].start()
            while compute.n_waiting <= n:
                time.sleep(0.001)
        compute.give_way()
        order.append(5)
        return threading.get_ident()

    where = compute.run(long)
    assert order == [0, 1, 2, 3, 4, 5]
    assert compute.run(threading.get_ident) == where != threading.get_ident()
    for thread in threads:
        thread.join(10)


def test_an_error_is_that_of_who_asked() -> None:
    compute = ComputeThread()
    with pytest.raises(ZeroDivisionError):
        compute.run(lambda: 1 // 0)
    assert compute.run(lambda: 2) == 2
    with pytest.raises(ZeroDivisionError):
        in_new_thread(lambda: 1 // 0)
    assert in_new_thread(lambda: 3) == 3
