"""Progress callbacks for long calls from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from transduce.progress import Columns, LiveBars

__all__ = ["Progress", "progress_callback"]

Progress = Callable[[int, int], object]  # called with (done, total)


@contextmanager
def progress_callback(progress: bool | Progress, total: int) -> Iterator[Progress]:
    """Yield a progress callback: ``progress`` itself, a bar on stderr for True, or a no-op for False."""
    if progress is False:
        yield lambda done, total: None
    elif progress is True:
        with LiveBars(_columns, is_live=True) as bars:
            show = bars.add("translating", total)
            yield lambda done, total: show(completed=done)
    else:
        yield progress


def _columns() -> Columns:
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    return MofNCompleteColumn(), TimeRemainingColumn()
