"""The one thread in which all models of a server compute, in the order in which they ask.

PyTorch's helper threads belong to the thread that has started them. Those of several threads take the cores from each
other even while they wait: a batch then takes half as long again. So nothing else computes on several cores; models are
loaded in threads that end.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["ComputeThread", "in_new_thread"]

ResultT = TypeVar("ResultT")


class ComputeThread:
    """Does what other threads ask for, first come, first served."""

    def __init__(self) -> None:
        self._asked = queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]]()
        threading.Thread(target=self._work, name="compute", daemon=True).start()

    @property
    def n_waiting(self) -> int:
        """How much work waits."""
        return self._asked.qsize()

    def run(self, work: Callable[[], ResultT]) -> ResultT:
        """Wait for one's turn, do ``work`` in the thread, and return its result or raise its exception."""
        future = Future[ResultT]()
        self._asked.put((work, future))
        return future.result()

    def give_way(self) -> None:
        """Do what has been asked for meanwhile; to be called by long work in the thread."""
        for _ in range(self.n_waiting):
            self._do_next()

    def _work(self) -> None:
        while True:
            self._do_next()

    def _do_next(self) -> None:
        _fulfil(*self._asked.get())


def in_new_thread(work: Callable[[], ResultT]) -> ResultT:
    """Do ``work`` in a thread that ends with it; return its result or raise its exception."""
    future = Future[ResultT]()
    threading.Thread(target=_fulfil, args=(work, future), name="load", daemon=True).start()
    return future.result()


def _fulfil(work: Callable[[], ResultT], future: Future[ResultT]) -> None:
    """Do ``work``, and give its result or its exception to those who wait."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)
