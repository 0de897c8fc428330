"""A first Ctrl-C asks a run to save and stop; a second one ends it at once."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

from transduce.cli.output import say

__all__ = ["StopRequest"]


class StopRequest:
    """Whether somebody asked to stop, and by which signal. SIGINT and SIGTERM ask while the ``with`` block lasts."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._earlier: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}

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
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._earlier.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        say("stopping after this update and saving; once more to stop at once")
        for kind, handler in self._earlier.items():
            signal.signal(kind, handler)
