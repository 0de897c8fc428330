"""What a run tells while it goes on, and the file that keeps it: ``metrics.jsonl``, one JSON object a line."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transduce.errors import DataError
from transduce.files import decoded_lines, named_in_errors, open_regular, write_lines
from transduce.metrics import perplexity
from transduce.training.checkpoint import TrainState

__all__ = [
    "CheckpointRecord", "Listener", "MetricsFile", "Record", "Score", "SkipRecord", "UpdateRecord", "ValidationRecord",
]  # fmt: skip


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
class Score:
    """How good outputs are, by one measure."""

    value: float
    signature: str | None = None  # what was measured, and how


@dataclass(frozen=True, slots=True)
class ValidationRecord:
    """A look at the dev set."""

    update: int
    nll_nats: float  # per target token, not smoothed
    scores: Mapping[str, Score]  # by name
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


@dataclass(frozen=True, slots=True)
class SkipRecord:
    """An update was left out, because its loss or its gradient was not finite."""

    update: int  # the last that was made
    message: str
    elapsed_s: float

    kind = "skipped"


Record = UpdateRecord | ValidationRecord | CheckpointRecord | SkipRecord
Listener = Callable[[Record], None]


class MetricsFile:
    """A listener that appends each logged record to ``metrics.jsonl`` at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rewind(self, state: TrainState) -> None:
        """Forget what came after ``state`` was saved: the resumed run will write it again."""
        if os.path.lexists(self.path):
            with open_regular(self.path) as stream:
                lines = list(decoded_lines(stream, str(self.path)))
            if lines and not _is_record(lines[-1]):
                lines.pop()  # a killed process was writing it
            for number, line in enumerate(lines, start=1):
                if not _is_record(line):
                    raise DataError(f"{self.path}:{number} is not a record; remove the line to go on")
            n_skipped = 0
            kept = []
            for line in lines:
                record = json.loads(line)
                n_skipped += record["kind"] == SkipRecord.kind
                if _is_before(record, state, n_skipped=n_skipped):
                    kept.append(line)
            write_lines(self.path, kept)

    def __call__(self, record: Record) -> None:
        """Write one record."""
        if isinstance(record, UpdateRecord) and not record.is_logged:
            return
        with named_in_errors(self.path), open_regular(self.path, "ab") as stream:
            stream.write(json.dumps(as_json(record)).encode("ascii") + b"\n")


def _is_record(line: str) -> bool:
    try:
        record = json.loads(line)
        return isinstance(record["update"], int) and isinstance(record["kind"], str)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _is_before(record: dict[str, Any], state: TrainState, *, n_skipped: int) -> bool:
    """Whether a record was written before ``state`` was saved; ``n_skipped`` records of skips, this one included."""
    if record["update"] != state.update:
        return bool(record["update"] < state.update)
    match record["kind"]:
        case SkipRecord.kind:
            return n_skipped <= state.n_skipped
        case ValidationRecord.kind:
            return state.validated_update == state.update
        case CheckpointRecord.kind:
            return False  # written when the state was saved, and again when it is resumed
        case _:
            return True


def as_json(record: Record) -> dict[str, Any]:
    """A record as plain values, its kind first. Numbers that are not finite become null: JSON has none.

    Each score has a key of its own; ``signature`` is that of the first.
    """
    fields: dict[str, Any] = {"kind": record.kind, **asdict(record)}
    fields.pop("is_logged", None)
    if isinstance(record, ValidationRecord):
        fields |= {name: score["value"] for name, score in fields["scores"].items()}
        fields["signature"] = next((score["signature"] for score in fields.pop("scores").values()), None)
        fields["perplexity"] = record.perplexity
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in fields.items()
    }
