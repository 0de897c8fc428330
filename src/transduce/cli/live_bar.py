"""A bar on stderr where that is a terminal, and lines above it; elsewhere, the lines alone. Imports no torch."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.progress import Progress

from transduce.cli.output import say, visible

__all__ = ["LiveBar"]


class LiveBar:
    """What the bars of a training and of a text have in common: ``with`` starts and stops one if it ``is_live``."""

    def __init__(self, bar: Progress, *, is_live: bool) -> None:
        self._bar, self.is_live = bar, is_live

    def __enter__(self) -> Self:
        if self.is_live:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_live:
            self._bar.stop()

    def tell(self, line: str) -> None:
        """A line for people; above the bar on a terminal."""
        if self.is_live:
            self._bar.console.print(visible(line), markup=False, highlight=False, soft_wrap=True)
        else:
            say(line)
