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
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("translating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Bar(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("", total=total)
            yield lambda done, total: bar.update(task, completed=done)
    else:
        yield progress
