"""Progress bars, the only ones there are: on stderr, with columns as their users want them. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn

__all__ = ["LiveBars"]


class LiveBars:
    """Bars on stderr: ``with`` shows them until its block ends if they are to be live, else nothing is seen of them.

    What is done and its bar are followed by ``columns``: rich's, or text with fields, ``"{task.fields[left]}"``.
    """

    def __init__(self, *columns: str | ProgressColumn, is_live: bool, bar_width: int | None = 40) -> None:
        self.is_live = is_live
        all_columns = "{task.description}", BarColumn(bar_width), *columns
        self._bars = Progress(*all_columns, console=Console(stderr=True), redirect_stdout=False)  # results go elsewhere

    def __enter__(self) -> Self:
        if self.is_live:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.is_live:
            self._bars.stop()

    def add(self, what: str, total: float | None = None, **fields: Any) -> Callable[..., None]:
        """One more bar; what is returned changes it: ``completed=7`` or ``advance=1``, ``total``, a field."""
        return partial(self._bars.update, self._bars.add_task(what, total=total, **fields))

    def print_above(self, line: str) -> None:
        """A line above the bars, as it is: nothing in it is markup, and only the terminal breaks it."""
        self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)
