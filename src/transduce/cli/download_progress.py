"""How downloads look: bars on a terminal, plain lines elsewhere. Both on stderr. Imports no torch."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from transduce.cli.output import say, visible

__all__ = ["DownloadProgress", "PlainLines"]

SECONDS_A_LINE = 30.0


class DownloadProgress:
    """What is fetched, file by file: ``with DownloadProgress() as progress: ...``."""

    def __init__(self) -> None:
        self.is_live = sys.stderr.isatty()
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._bars = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))

    def __enter__(self) -> Self:
        if self.is_live:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_live:
            self._bars.stop()

    def tell(self, line: str) -> None:
        """A line for people; above the bars on a terminal."""
        if self.is_live:
            self._bars.console.print(visible(line), markup=False, highlight=False)
        else:
            say(line)

    def of_file(self, name: str) -> Callable[[int, int | None], None]:
        """A display for a file; what is returned moves it to so many bytes, of so many in all if that is known."""
        if not self.is_live:
            return PlainLines(name, tell=say)
        task = self._bars.add_task(name, total=None)
        return lambda n_bytes, n_bytes_in_all: self._bars.update(task, completed=n_bytes, total=n_bytes_in_all)


class PlainLines:
    """A line when a file begins, at each tenth of it, or after half a minute."""

    def __init__(self, name: str, *, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._tell, self._clock = tell, clock
        self._told_tenth, self._told_at = -1, 0.0

    def __call__(self, n_bytes: int, n_bytes_in_all: int | None) -> None:
        """So many bytes are here, of so many in all if that is known."""
        tenth = 10 * n_bytes // n_bytes_in_all if n_bytes_in_all else 0
        now = self._clock()
        if tenth <= self._told_tenth and now < self._told_at + SECONDS_A_LINE:
            return
        of_all = f" of {n_bytes_in_all / 1e6:,.1f} MB ({n_bytes / n_bytes_in_all:.0%})" if n_bytes_in_all else " MB"
        self._tell(f"{self.name}: {n_bytes / 1e6:,.1f}{of_all}")
        self._told_tenth, self._told_at = tenth, now
