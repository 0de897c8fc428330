"""The threads in which all models of a server compute, the most urgent work first.

With the engine in C there is one for each core, and each computes alone: none waits for another at the end of a batch.
PyTorch's helper threads belong to the thread that has started them, and those of several threads take the cores from
each other even while they wait: a batch then takes half as long again. So with PyTorch there is one thread, and models
are loaded in threads that end. Long work gives way between its steps.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeVar

from transduce.inference.threads import limit_threads

__all__ = ["ComputeThreads", "Urgency", "in_new_thread"]

ResultT = TypeVar("ResultT")
PATIENCE_S = 1.0  # after which work goes before all that has just been asked for and is one step more urgent
GIVEN_SHARE = 4.0  # times its own time: so much may pass for more urgent work while some is under way


class Urgency(IntEnum):
    """What goes first."""

    BRIEF = 0  # a few sentences that somebody waits for
    LONG = 1  # part of a text of many sentences
    GENERATION = 2  # a text that is generated token by token


@dataclass(slots=True, order=True)
class _Asked:
    rank: float  # the lowest is done first
    number: int
    urgency: Urgency = field(compare=False)
    work: Callable[[], Any] = field(compare=False)
    future: Future[Any] = field(compare=False)


class ComputeThreads:
    """Do what other threads ask for."""

    def __init__(self) -> None:
        self._asked: list[_Asked] = []  # a heap
        self._condition = threading.Condition()
        self._numbers = itertools.count()
        self._own = threading.local()  # what is under way in a thread: each has given way to the next
        self.n = 0
        self.use(1)

    def use(self, n: int) -> None:
        """Compute in ``n`` threads from now on, or as many as before; of several, each computes alone."""
        for _ in range(self.n, n):
            threading.Thread(target=self._work, name="compute", daemon=True).start()
        self.n = max(n, self.n)

    @property
    def _under_way(self) -> list[_UnderWay]:
        if not hasattr(self._own, "under_way"):
            self._own.under_way = []
        under_way: list[_UnderWay] = self._own.under_way
        return under_way

    @property
    def n_waiting(self) -> int:
        """How much work waits."""
        return len(self._asked)

    @property
    def given_s(self) -> float:
        """The seconds that the work under way in this thread has given to more urgent work."""
        return self._under_way[-1].given_s if self._under_way else 0.0

    def run(self, work: Callable[[], ResultT], *, urgency: Urgency = Urgency.BRIEF) -> ResultT:
        """Wait for one's turn, do ``work`` in one of the threads, and return its result or raise its exception.

        The most urgent work goes first; none waits for ever.
        """
        future = Future[ResultT]()
        with self._condition:
            rank = time.monotonic() + urgency * PATIENCE_S
            heapq.heappush(self._asked, _Asked(rank, next(self._numbers), urgency, work, future))
            self._condition.notify()
        return future.result()

    def give_way(self) -> None:
        """Do more urgent work that was asked for meanwhile; to be called by long work, between its steps.

        It takes at most four fifths of the time, so that what gives way is done as well. Does nothing in other threads.
        """
        own = self._under_way[-1] if self._under_way else None
        while own is not None and own.may_give_way() and (asked := self._more_urgent_than(own.urgency)):
            begun = time.monotonic()
            self._do(asked)
            own.given_s += time.monotonic() - begun

    def _more_urgent_than(self, urgency: Urgency) -> _Asked | None:
        """Take the most urgent work, if it is more urgent than this."""
        with self._condition:
            found = min((each for each in self._asked if each.urgency < urgency), default=None)
            if found is not None:
                self._asked.remove(found)
                heapq.heapify(self._asked)
            return found

    def _work(self) -> None:
        while True:
            with self._condition:
                while not self._asked:
                    self._condition.wait()
                asked = heapq.heappop(self._asked)
            if self.n > 1:
                limit_threads(1)
            self._do(asked)

    def _do(self, asked: _Asked) -> None:
        self._under_way.append(_UnderWay(asked.urgency))
        _fulfil(asked.work, asked.future)
        self._under_way.pop()


@dataclass(slots=True)
class _UnderWay:
    """Work that has begun."""

    urgency: Urgency
    given_s: float = 0.0  # to more urgent work
    begun: float = field(default_factory=time.monotonic)

    def may_give_way(self) -> bool:
        """Whether it has had its share so far."""
        own_s = time.monotonic() - self.begun - self.given_s
        return self.given_s <= GIVEN_SHARE * own_s


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
