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

__all__ = ["EndedBySignal", "StopRequest", "exit_on_signals"]

HANGUP: int | None = getattr(signal, "SIGHUP", None)  # not on Windows
# A terminal that goes sends SIGHUP through its shell, too, and a session that ends sends SIGTERM with it.
HANGUP_S = 1.0


class EndedBySignal(SystemExit):
    """The command was ended by a signal: what is half written is removed on the way out, as after a Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


class _StopSignals:
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


def exit_on_signals() -> None:
    """Let SIGTERM and SIGHUP end this process as a Ctrl-C does. The second one ends it as it is."""
    requests = _StopSignals()

    def end(number: int, frame: FrameType | None) -> None:
        is_first = requests.first is None
        if requests.is_second(number):
            os._exit(128 + number)
        if is_first:
            raise EndedBySignal(number)

    for number in _handled_signals(signal.SIGTERM):
        signal.signal(number, end)


def _handled_signals(*others: int) -> list[int]:
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
        self._previous_handlers: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}
        self._previous_fd = -1
        self._pipe: tuple[int, int] | None = None

    def __call__(self) -> bool:
        """True once asked."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """128 + the signal's number."""
        return 128 + (self.signal or 0)

    def __enter__(self) -> Self:
        handled = _handled_signals(signal.SIGINT, signal.SIGTERM)
        for number in handled:
            self._previous_handlers[number] = signal.signal(number, self._handle)
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        self._previous_fd = signal.set_wakeup_fd(self._pipe[1])
        threading.Thread(target=_exit_on_second_signal, args=(self._pipe[0], handled), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        signal.set_wakeup_fd(self._previous_fd)
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)
        if self._pipe is not None:
            os.close(self._pipe[1])  # ends the thread, which closes the other end

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
            echo("stopping after this batch and saving; once more to stop at once")


def _exit_on_second_signal(pipe: int, handled: list[int]) -> None:
    """Read signals as they come. What a process leaves half written is no file of a run, and swept away by the next."""
    requests = _StopSignals()
    while byte := os.read(pipe, 1):
        if byte[0] in handled and requests.is_second(byte[0]):
            os._exit(128 + byte[0])
    os.close(pipe)
