"""Progress bars on stderr, with columns chosen by the caller. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:  # rich is imported when bars are shown
    from rich.progress import Progress, ProgressColumn

__all__ = ["Columns", "LiveBars"]

Columns = Sequence["str | ProgressColumn"]  # rich columns, or format strings like "{task.fields[left]}"


class LiveBars:
    """Progress bars, shown while the ``with`` block runs if ``is_live``, else never.

    ``columns``, called only if live, returns those that follow the description and the bar.
    """

    def __init__(self, columns: Callable[[], Columns], *, is_live: bool, bar_width: int | None = 40) -> None:
        self._bars = _stderr_bars(columns(), bar_width) if is_live else None

    @property
    def is_live(self) -> bool:
        """Whether the bars are shown."""
        return self._bars is not None

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def add(self, what: str, total: float | None = None, **fields: Any) -> Callable[..., None]:
        """Add a bar and return its update function, which takes ``completed``, ``advance``, ``total`` and fields."""
        if self._bars is None:
            return lambda **_: None
        return partial(self._bars.update, self._bars.add_task(what, total=total, **fields))

    def print_above(self, line: str) -> None:
        """Print a line above the bars, which are shown, without markup, highlighting or wrapping."""
        assert self._bars is not None
        self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)


def _stderr_bars(columns: Columns, bar_width: int | None) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress

    all_columns = "{task.description}", BarColumn(bar_width), *columns
    return Progress(*all_columns, console=Console(stderr=True), redirect_stdout=False)  # stdout is for results
