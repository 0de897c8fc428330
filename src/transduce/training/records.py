"""What a run tells while it goes on, and the file that keeps it: ``metrics.jsonl``, one JSON object a line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transduce.errors import DataError
from transduce.files import read_lines, write_lines
from transduce.metrics import perplexity

__all__ = ["CheckpointRecord", "Listener", "MetricsFile", "Record", "UpdateRecord", "ValidationRecord"]


@dataclass(frozen=True, slots=True)
class UpdateRecord:
    """An update. Losses are means over the target tokens since the last logged record."""

    update: int
    epoch: int
    loss_nats: float  # smoothed
    nll_nats: float  # not smoothed
    learning_rate: float
    gradient_norm: float  # of this update, before clipping
    src_tokens: int  # since the start of the run, end symbols included
    tgt_tokens: int
    tgt_tokens_per_s: float  # since the last logged record
    elapsed_s: float  # since the start of the run, over all its sittings
    is_logged: bool

    kind = "update"


@dataclass(frozen=True, slots=True)
class ValidationRecord:
    """A look at the dev set."""

    update: int
    nll_nats: float  # per target token, not smoothed
    bleu: float | None
    signature: str | None
    is_best: bool
    elapsed_s: float

    kind = "validation"

    @property
    def perplexity(self) -> float:
        """Per token. Section 6.2."""
        return perplexity(self.nll_nats, 1)


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """A checkpoint is on the disk."""

    update: int
    path: str
    elapsed_s: float

    kind = "checkpoint"


Record = UpdateRecord | ValidationRecord | CheckpointRecord
Listener = Callable[[Record], None]


class MetricsFile:
    """A listener that appends each logged record to ``metrics.jsonl`` at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rewind(self, update: int) -> None:
        """Forget what came after ``update``: a resumed run will write it again."""
        if self.path.exists():
            lines = list(read_lines(self.path))
            if lines and not _is_record(lines[-1]):
                lines.pop()  # a killed process was writing it
            for number, line in enumerate(lines, start=1):
                if not _is_record(line):
                    raise DataError(f"{self.path}:{number} is not a record; remove the line to go on")
            write_lines(self.path, (line for line in lines if json.loads(line)["update"] <= update))

    def __call__(self, record: Record) -> None:
        """Write one record."""
        if isinstance(record, UpdateRecord) and not record.is_logged:
            return
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(as_json(record)) + "\n")


def _is_record(line: str) -> bool:
    try:
        return isinstance(json.loads(line)["update"], int)
    except (ValueError, TypeError, KeyError):
        return False


def as_json(record: Record) -> dict[str, Any]:
    """A record as plain values, its kind first. Numbers that are not finite become null: JSON has none."""
    fields: dict[str, Any] = {"kind": record.kind, **asdict(record)}
    fields.pop("is_logged", None)
    if isinstance(record, ValidationRecord):
        fields["perplexity"] = record.perplexity
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in fields.items()
    }
