"""A first Ctrl-C, or SIGTERM, asks a run to save and stop; a second one ends it at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

from transduce.cli.output import say

__all__ = ["StopRequest"]


class StopRequest:
    """Whether somebody asked to stop, and by which signal. SIGINT and SIGTERM ask while the ``with`` block lasts.

    Python runs its own handlers between its own instructions, so a process that waits for others, or that computes for
    long in a library, would not see a second signal. A thread does: the system writes each signal into a pipe.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._earlier: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}
        self._earlier_fd = -1
        self._pipe: tuple[int, int] | None = None

    def __call__(self) -> bool:
        """True once asked."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """128 + the signal's number."""
        return 128 + (self.signal or 0)

    def __enter__(self) -> Self:
        for kind in (signal.SIGINT, signal.SIGTERM):
            self._earlier[kind] = signal.signal(kind, self._ask)
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        self._earlier_fd = signal.set_wakeup_fd(self._pipe[1])
        threading.Thread(target=_end_at_the_second, args=(self._pipe[0],), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(self._earlier_fd)
        for number, handler in self._earlier.items():
            signal.signal(number, handler)
        if self._pipe is not None:
            os.close(self._pipe[1])  # ends the thread, which closes the other end

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
            say("stopping after this update and saving; once more to stop at once")


def _end_at_the_second(pipe: int) -> None:
    """Read signals as they come. What a process leaves half written is no file of a run, and swept away by the next."""
    n_asked = 0
    while byte := os.read(pipe, 1):
        n_asked += byte[0] in (signal.SIGINT, signal.SIGTERM)
        if n_asked == 2:
            os._exit(128 + byte[0])
    os.close(pipe)
