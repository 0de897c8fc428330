"""Progress display on stderr: bars on a terminal, plain lines elsewhere. Imports no torch."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from transduce.cli.output import echo, is_first_process, visible
from transduce.progress import Columns, LiveBars

if TYPE_CHECKING:
    from transduce.config import TrainingConfig
    from transduce.training import Record, UpdateRecord

__all__ = ["DownloadProgress", "LineProgress", "PlainLines", "ShardProgress", "TrainingProgress"]

LOG_INTERVAL_S = 30.0


class _Display(LiveBars):
    """Progress bars on a terminal, log lines elsewhere."""

    def log(self, line: str) -> None:
        """Print a line on stderr, above the bars if they are shown."""
        if self.is_live:
            self.print_above(visible(line))
        else:
            echo(line)


class TrainingProgress(_Display):
    """Training listener: ``with TrainingProgress(config) as progress: train(..., listeners=[progress])``.

    ``counted``: what the loss is summed over, as ``Task.counted_noun``.
    """

    def __init__(self, config: TrainingConfig, *, counted: str = "target tokens") -> None:
        self.config, self._unit = config, counted.removeprefix("target ")
        super().__init__(_training_columns, is_live=is_first_process() and sys.stderr.isatty(), bar_width=None)
        self._show = self.add("training", total=1.0, figures="", left="", visible=False)
        self._first: tuple[float, float] | None = None  # fraction done and time at the session's first record

    def __call__(self, record: Record) -> None:
        """Show one record."""
        from transduce.training import CheckpointRecord, SkipRecord, UpdateRecord, ValidationRecord

        match record:
            case UpdateRecord():
                self._show_update(record)
            case ValidationRecord():
                perplexity = record.perplexity
                loss = f"loss {record.nll_nats:.4f}" if perplexity is None else f"perplexity {perplexity:.3f}"
                score = "".join(f"   {name.upper()} {score.value:.2f}" for name, score in record.scores.items())
                best = "   best so far" if record.is_best else ""
                self.log(f"update {record.update:,}: dev {loss}{score}{best}")
            case SkipRecord():
                self.log(f"warning: {record.message}")
            case CheckpointRecord():
                pass  # too frequent; metrics.jsonl has them

    def _show_update(self, record: UpdateRecord) -> None:
        done = self._fraction_done(record)
        left = f"{_clock(self._seconds_left(done, record.elapsed_s))} left"
        rate = f"{record.tgt_tokens_per_s:,.0f} {self._unit}/s"
        figures = f"loss {record.loss_nats:.3f}  {rate}  lr {record.learning_rate:.2e}"
        update = f"update {record.update:,}"
        if self.is_live:
            self._show(completed=done, description=update, figures=figures, left=left, visible=True)
        elif record.is_logged:
            from transduce.metrics import perplexity

            measured = "  ".join(f"{name} {value:.3g}" for name, value in record.measures.items())
            measured = measured or f"perplexity {perplexity(record.nll_nats, 1):.2f}"
            echo(f"{update}  {figures}  {measured}  {left}")

    def _fraction_done(self, record: UpdateRecord) -> float:
        done = self._passes(record.update) / self._passes(self.config.max_updates)
        if self.config.max_minutes is not None:
            done = max(done, record.elapsed_s / (60 * self.config.max_minutes))
        return min(done, 1.0)

    def _passes(self, n_updates: int) -> float:
        return n_updates * self.config.mean_passes(n_updates)

    def _seconds_left(self, done: float, elapsed_s: float) -> float:
        if self._first is None:
            self._first = done, elapsed_s
        gained, took = done - self._first[0], elapsed_s - self._first[1]
        return took / gained * (1 - done) if gained > 0 else math.inf


def _clock(seconds: float) -> str:
    """Format seconds as hours, minutes and seconds.

    >>> _clock(3725)
    '1:02:05'
    """
    if not math.isfinite(seconds):
        return "-:--:--"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


class LineProgress(_Display):
    """Number of lines done, of ``n_lines`` if known: ``with LineProgress("translating", 7) as progress: ...``."""

    def __init__(self, what: str, n_lines: int | None, *, is_enabled: bool = True) -> None:
        super().__init__(partial(_counting, "lines"), is_live=is_enabled and sys.stderr.isatty(), bar_width=None)
        self._show = self.add(what, n_lines)
        self._n_written, self._n_done = 0, 0

    def advance(self) -> None:
        """Count one line as written."""
        self._n_written += 1
        self.reach(self._n_written)

    def reach(self, n_done: int, *, of: int | None = None) -> None:
        """Show how many lines are done, ``of`` all if that is known only now; more may be than were written."""
        self._n_done = max(self._n_done, n_done)
        self._show(completed=self._n_done, **({} if of is None else {"total": of}))


class ShardProgress(_Display):
    """Number of files done: ``with ShardProgress("translating", 7) as progress: progress(3)``."""

    def __init__(self, what: str, n_shards: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(partial(_counting, "files"), is_live=sys.stderr.isatty(), bar_width=None)
        self._show = self.add(what, n_shards)
        self._what, self._n_shards, self._clock, self._logged_at = what, n_shards, clock, -math.inf
        self.n_done = 0

    def __call__(self, n_done: int) -> None:
        """Show how many are done; without a terminal, every half minute."""
        self.n_done = n_done
        if self.is_live:
            self._show(completed=n_done)
        elif self._clock() >= self._logged_at + LOG_INTERVAL_S:
            self.log(f"{self._what}: {n_done:,} of {self._n_shards:,} files")
            self._logged_at = self._clock()


class DownloadProgress(_Display):
    """Progress of downloads, one bar per file: ``with DownloadProgress() as progress: ...``."""

    def __init__(self) -> None:
        super().__init__(_download_columns, is_live=sys.stderr.isatty())

    def of_file(self, name: str) -> Callable[[int, int | None], None]:
        """Add a bar for a file; return its update function, which takes the bytes done and the total if known."""
        if not self.is_live:
            return PlainLines(name, log=echo)
        show = self.add(name)
        return lambda n_bytes, total: show(completed=n_bytes, total=total)


def _training_columns() -> Columns:
    from rich.progress import TaskProgressColumn, TimeElapsedColumn

    return TaskProgressColumn(), "{task.fields[figures]}", TimeElapsedColumn(), "{task.fields[left]}"


def _counting(noun: str) -> Columns:
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn, TimeRemainingColumn

    return MofNCompleteColumn(), noun, TimeElapsedColumn(), TimeRemainingColumn()


def _download_columns() -> Columns:
    from rich.progress import DownloadColumn, TimeRemainingColumn, TransferSpeedColumn

    return DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()


class PlainLines:
    """Logs the progress of a file at its start, at every tenth, and every half minute."""

    def __init__(self, name: str, *, log: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._log, self._clock = log, clock
        self._logged_tenth, self._logged_at = -1, 0.0

    def __call__(self, n_bytes: int, total: int | None) -> None:
        """Report the bytes done, and the total if known."""
        tenth = 10 * n_bytes // total if total else 0
        now = self._clock()
        if tenth <= self._logged_tenth and now < self._logged_at + LOG_INTERVAL_S:
            return
        of_total = f" of {total / 1e6:,.1f} MB ({n_bytes / total:.0%})" if total else " MB"
        self._log(f"{self.name}: {n_bytes / 1e6:,.1f}{of_total}")
        self._logged_tenth, self._logged_at = tenth, now
