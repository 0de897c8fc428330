"""Ctrl-C while the library computes."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

__all__ = ["interruptibly"]

WAIT_S = 0.1  # at a time: on Windows, no signal ends a longer wait

ResultT = TypeVar("ResultT")


def interruptibly(work: Callable[[], ResultT], stop: array[int]) -> ResultT:
    """Return what ``work`` returns; it ends soon after ``stop[0]`` is 1.

    In the main thread, another one works while this one waits: Python handles signals in the main thread only, and
    there at the entry of the first function that the library calls, where ctypes ignores what they raise and the
    library gets no answer. What is raised here stops the work, and goes on when that has ended.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    found, faults, is_done = list[ResultT](), list[BaseException](), threading.Event()

    def do() -> None:
        try:
            found.append(work())
        except BaseException as error:
            faults.append(error)
        is_done.set()

    thread = threading.Thread(target=copy_context().run, args=(do,), name="native engine")
    try:
        thread.start()
        while not is_done.wait(WAIT_S):  # join() takes a thread for ended when a signal handler raises in it
            pass
        thread.join()
    except BaseException:
        stop[0] = 1
        while not is_done.wait(WAIT_S) and thread.ident is not None:  # None: it was not started
            pass
        raise
    if faults:
        raise faults.pop()
    return found.pop()
