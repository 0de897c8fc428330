"""How a run looks while it goes on: a live bar on a terminal, plain lines elsewhere. Both on stderr."""

from __future__ import annotations

import math
import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from transduce.cli.live_bar import LiveBar
from transduce.cli.output import is_speaker, say
from transduce.config import TrainingConfig
from transduce.metrics import perplexity
from transduce.training import CheckpointRecord, Record, SkipRecord, UpdateRecord, ValidationRecord

__all__ = ["TrainingProgress"]


class TrainingProgress(LiveBar):
    """A listener of a run: ``with TrainingProgress(config) as progress: train(..., listeners=[progress])``."""

    def __init__(self, config: TrainingConfig) -> None:
        self.config = config
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=Console(stderr=True),
        )
        super().__init__(bar, is_live=is_speaker() and sys.stderr.isatty())
        self._task = bar.add_task("training", total=1.0, figures="", left="", visible=False)
        self._first: tuple[float, float] | None = None  # share done and time at the first record of this sitting

    def __call__(self, record: Record) -> None:
        """Show one record."""
        match record:
            case UpdateRecord():
                self._show_update(record)
            case ValidationRecord():
                score = "" if record.bleu is None else f"   BLEU {record.bleu:.2f}"
                score = score if record.f1 is None else f"   F1 {record.f1:.2f}"
                best = "   best so far" if record.is_best else ""
                self.tell(f"update {record.update:,}: dev perplexity {record.perplexity:.3f}{score}{best}")
            case SkipRecord():
                self.tell(f"warning: {record.message}")
            case CheckpointRecord():
                pass  # too many to tell; metrics.jsonl has them

    def _show_update(self, record: UpdateRecord) -> None:
        done = self._share_done(record)
        left = f"{_clock(self._seconds_left(done, record.elapsed_s))} left"
        figures = f"loss {record.loss_nats:.3f}  {record.tgt_tokens_per_s:,.0f} tokens/s  lr {record.learning_rate:.2e}"
        if self.is_live:
            description = f"update {record.update:,}"
            self._bar.update(
                self._task, completed=done, description=description, figures=figures, left=left, visible=True
            )
        elif record.is_logged:
            say(f"update {record.update:,}  {figures}  perplexity {perplexity(record.nll_nats, 1):.2f}  {left}")

    def _share_done(self, record: UpdateRecord) -> float:
        done = record.update / self.config.max_updates
        if self.config.max_minutes is not None:
            done = max(done, record.elapsed_s / (60 * self.config.max_minutes))
        return min(done, 1.0)

    def _seconds_left(self, done: float, elapsed_s: float) -> float:
        if self._first is None:
            self._first = done, elapsed_s
        gained, took = done - self._first[0], elapsed_s - self._first[1]
        return took / gained * (1 - done) if gained > 0 else math.inf


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> _clock(3725)
    '1:02:05'
    """
    if not math.isfinite(seconds):
        return "-:--:--"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
