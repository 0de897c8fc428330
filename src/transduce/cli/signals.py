"""Signals that stop a command: immediately, or for a training run after saving. A second signal exits at once.

The signals are SIGINT (Ctrl-C), SIGTERM, and SIGHUP (the terminal has closed). One that is ignored when the command
starts stays ignored: SIGHUP under ``nohup``, SIGINT in the background of a shell script.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Self

from transduce.cli.output import echo

__all__ = [
    "HANGUP", "EndedBySignal", "StopRequest", "end_on_signals", "exit_on_signals", "heeded_signals", "ignore_hangups",
    "told_how_to_resume",
]  # fmt: skip

HANGUP: int | None = getattr(signal, "SIGHUP", None)  # not on Windows
ENDING = (signal.SIGTERM, *([HANGUP] if HANGUP is not None else []))
# A closing terminal may send SIGHUP twice (through its shell), or SIGTERM with it: within this time they count as one.
HANGUP_S = 1.0


class EndedBySignal(SystemExit):
    """The command was stopped by a signal; raised so that cleanup runs, as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


class _StopSignals:
    """Tells a second stop request from repeated signals of one hang-up."""

    def __init__(self) -> None:
        self.first: int | None = None
        self._first_time = 0.0

    def is_second(self, number: int) -> bool:
        """Record a signal; return whether it is a second request. The signals of one hang-up count as one."""
        now = time.monotonic()
        if self.first is None:
            self.first, self._first_time = number, now
            return False
        return HANGUP not in (number, self.first) or now - self._first_time >= HANGUP_S


def exit_on_signals() -> None:
    """Make SIGTERM and SIGHUP raise, as Ctrl-C does; a second one exits without cleanup."""
    received = _StopSignals()

    def handle(number: int, frame: FrameType | None) -> None:
        is_first = received.first is None
        if received.is_second(number):
            os._exit(128 + number)
        if is_first:
            raise EndedBySignal(number)

    for number in heeded_signals(*ENDING):
        signal.signal(number, handle)


def end_on_signals() -> None:
    """Let a signal end the process at once: what was to be done is done, and only Python's own end is left."""
    for number in heeded_signals(signal.SIGINT, *ENDING):
        signal.signal(number, signal.SIG_DFL)


def heeded_signals(*numbers: int) -> list[int]:
    """Return those of the signals that are not ignored."""
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def told_how_to_resume(folder: Path) -> Iterator[None]:
    """Print how to go on with the run in a folder if it is ended while its text is prepared or its model scored."""
    from transduce.runs.run_file import holds_run

    try:
        yield
    except (KeyboardInterrupt, EndedBySignal):
        if holds_run(folder):
            echo(f"resume with: transduce train --resume --out {folder}")
        raise


def ignore_hangups() -> None:
    """Let SIGHUP end nothing: for a service that may be told to reload while it starts."""
    if HANGUP is not None:
        signal.signal(HANGUP, lambda number, frame: None)


class StopRequest:
    """A graceful stop request: within the ``with`` block, the first signal sets it and a second one exits.

    Python runs signal handlers between bytecode instructions, so a process that waits for others or runs long in a
    library would not see the second signal. A thread does: it reads the signals from a pipe (``set_wakeup_fd``).
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._previous_handlers: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}
        self._previous_fd = -1
        self._pipe: tuple[int, int] | None = None

    def __call__(self) -> bool:
        """Return whether a stop was requested."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """128 + the signal number."""
        return 128 + (self.signal or 0)

    def __enter__(self) -> Self:
        handled = heeded_signals(signal.SIGINT, *ENDING)
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
            echo("stopping after this batch and saving; send the signal again to stop at once")


def _exit_on_second_signal(pipe: int, handled: list[int]) -> None:
    """Read signal numbers from a pipe and exit at the second request. The next session removes temporary files."""
    received = _StopSignals()
    while byte := os.read(pipe, 1):
        if byte[0] in handled and received.is_second(byte[0]):
            os._exit(128 + byte[0])
    os.close(pipe)
