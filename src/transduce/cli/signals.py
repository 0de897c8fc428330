"""A first Ctrl-C asks a run to save and stop; a second one ends it at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from transduce.cli.output import say

__all__ = ["StopRequest", "stop_request"]


class StopRequest:
    """Whether somebody asked to stop, and by which signal."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self) -> bool:
        """True once asked."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """128 + the signal's number."""
        return 128 + (self.signal or 0)


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """SIGINT and SIGTERM become a request for as long as the block lasts."""
    request = StopRequest()

    def ask(number: int, frame: FrameType | None) -> None:
        request.signal = number
        say("stopping after this update and saving; once more to stop at once")
        for kind, handler in earlier.items():
            signal.signal(kind, handler)

    earlier = {kind: signal.signal(kind, ask) for kind in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for kind, handler in earlier.items():
            signal.signal(kind, handler)
