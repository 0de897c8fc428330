"""Signals that end a command: at once, or for a run, after what it does is saved. A second one does not wait.

They are Ctrl-C (SIGINT), SIGTERM, and SIGHUP, which says that the terminal has gone; where it is ignored, as under
``nohup``, it stays so.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Self

from transduce.cli.output import echo

__all__ = ["Ended", "StopRequest", "end_by_signals"]

HANGUP: int | None = getattr(signal, "SIGHUP", None)  # not on Windows
# A terminal that goes sends SIGHUP through its shell, too, and a session that ends sends SIGTERM with it.
HANGUP_S = 1.0


class Ended(SystemExit):
    """The command was ended by a signal: what is half written is removed on the way out, as after a Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


class _Requests:
    """The signals that have come, and whether one of them is a second request."""

    def __init__(self) -> None:
        self.first: int | None = None
        self._came = 0.0

    def is_second(self, number: int) -> bool:
        """Take note of a signal. What a single hang-up sends within a moment is one request."""
        now = time.monotonic()
        if self.first is None:
            self.first, self._came = number, now
            return False
        return HANGUP not in (number, self.first) or now - self._came >= HANGUP_S


def end_by_signals() -> None:
    """Let SIGTERM and SIGHUP end this process as a Ctrl-C does. The second one ends it as it is."""
    requests = _Requests()

    def end(number: int, frame: FrameType | None) -> None:
        is_first = requests.first is None
        if requests.is_second(number):
            os._exit(128 + number)
        if is_first:
            raise Ended(number)

    for number in _honoured(signal.SIGTERM):
        signal.signal(number, end)


def _honoured(*others: int) -> list[int]:
    """These signals, and SIGHUP unless whoever started this process wants it ignored."""
    is_wanted = HANGUP is not None and signal.getsignal(HANGUP) is not signal.SIG_IGN
    return [*others, *([HANGUP] if HANGUP is not None and is_wanted else [])]


class StopRequest:
    """Whether somebody asked to stop, and by which signal. All of them ask while the ``with`` block lasts.

    Python runs its own handlers between its own instructions, so a process that waits for others, or that computes for
    long in a library, would not see a second signal. A thread does: the system writes each signal into a pipe.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._earlier: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}
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
        asking = _honoured(signal.SIGINT, signal.SIGTERM)
        for number in asking:
            self._earlier[number] = signal.signal(number, self._ask)
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        self._earlier_fd = signal.set_wakeup_fd(self._pipe[1])
        threading.Thread(target=_end_at_the_second, args=(self._pipe[0], asking), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        signal.set_wakeup_fd(self._earlier_fd)
        for number, handler in self._earlier.items():
            signal.signal(number, handler)
        if self._pipe is not None:
            os.close(self._pipe[1])  # ends the thread, which closes the other end

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
            echo("stopping after this batch and saving; once more to stop at once")


def _end_at_the_second(pipe: int, asking: list[int]) -> None:
    """Read signals as they come. What a process leaves half written is no file of a run, and swept away by the next."""
    requests = _Requests()
    while byte := os.read(pipe, 1):
        if byte[0] in asking and requests.is_second(byte[0]):
            os._exit(128 + byte[0])
    os.close(pipe)
