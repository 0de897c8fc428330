"""Progress bars on stderr, with columns chosen by the caller. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn

__all__ = ["LiveBars"]


class LiveBars:
    """Progress bars, shown while the ``with`` block runs if ``is_live``, else never.

    ``columns`` follow the description and the bar: rich columns, or format strings like ``"{task.fields[left]}"``.
    """

    def __init__(self, *columns: str | ProgressColumn, is_live: bool, bar_width: int | None = 40) -> None:
        self.is_live = is_live
        all_columns = "{task.description}", BarColumn(bar_width), *columns
        self._bars = Progress(
            *all_columns, console=Console(stderr=True), redirect_stdout=False
        )  # stdout is for results

    def __enter__(self) -> Self:
        if self.is_live:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.is_live:
            self._bars.stop()

    def add(self, what: str, total: float | None = None, **fields: Any) -> Callable[..., None]:
        """Add a bar and return its update function, which takes ``completed``, ``advance``, ``total`` and fields."""
        return partial(self._bars.update, self._bars.add_task(what, total=total, **fields))

    def print_above(self, line: str) -> None:
        """Print a line above the bars, without markup, highlighting or wrapping."""
        self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)
