"""How far a text is translated: a bar on stderr where that is a terminal, and nothing elsewhere. Imports no torch."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from transduce.cli.live_bar import LiveBar
from transduce.cli.output import STANDARD
from transduce.files import BROKEN, open_binary, raw_lines

__all__ = ["LineProgress", "number_of_lines"]

MOST_BYTES = 256 << 20  # of a file whose lines are counted first: a moment against the time that its translation takes


class LineProgress(LiveBar):
    """Lines done, of so many in all if that is known: ``with LineProgress("translating", 7) as progress: ...``."""

    def __init__(self, what: str, n_lines: int | None, *, is_wanted: bool = True) -> None:
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("lines"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            redirect_stdout=False,  # results are not for this terminal
        )
        super().__init__(bar, is_live=is_wanted and sys.stderr.isatty())
        self._task = bar.add_task(what, total=n_lines)

    def advance(self) -> None:
        """One more line is done."""
        if self.is_live:
            self._bar.advance(self._task)


def number_of_lines(path: Path | None) -> int | None:
    """How many lines a file has, a last one without an end, too; None for stdin, pipes, and what takes long to count.

    Raises DataError if the file cannot be opened.
    """
    if path is None or path == STANDARD or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return None
    try:
        with open_binary(path) as stream:
            return sum(1 for _ in raw_lines(stream))
    except BROKEN:  # what is wrong with it is told by its reader
        return None
