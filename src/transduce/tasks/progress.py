"""How far a long call from Python has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "shown_progress"]

Progress = Callable[[int, int], object]  # how many are done, and of how many


@contextmanager
def shown_progress(progress: bool | Progress, total: int) -> Iterator[Progress]:
    """What to tell of each step: the function that was given, a bar on stderr for True, nobody for False."""
    if progress is False:
        yield lambda done, total: None
    elif progress is True:
        from rich.progress import MofNCompleteColumn, TimeRemainingColumn

        from transduce.progress import LiveBars

        with LiveBars(MofNCompleteColumn(), TimeRemainingColumn(), is_live=True) as bars:
            show = bars.add("translating", total)
            yield lambda done, total: show(completed=done)
    else:
        yield progress
