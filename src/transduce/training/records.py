"""Records of a run (updates, validations, checkpoints, skips) and ``metrics.jsonl``, one JSON object per line."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from transduce.errors import DataError, TrainingError
from transduce.files import decoded_lines, named_in_errors, open_regular, write_lines
from transduce.metrics import perplexity
from transduce.training.checkpoint import TrainState

__all__ = [
    "CheckpointRecord", "Listener", "MetricsFile", "Record", "Score", "SkipRecord", "UpdateRecord", "Validate",
    "Validation", "ValidationRecord",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class UpdateRecord:
    """Record of an update. Losses are means over the target tokens since the last logged record."""

    update: int
    epoch: int
    loss_nats: float  # with label smoothing
    nll_nats: float  # without
    learning_rate: float
    gradient_norm: float  # of this update, before clipping
    src_tokens: int  # since the start of the run, EOS included
    tgt_tokens: int
    tgt_tokens_per_s: float  # since the last logged record
    elapsed_s: float  # training time of all sessions
    is_logged: bool
    measures: Mapping[str, float] = field(default_factory=dict)  # of the objective, means since the last logged record

    kind = "update"


@dataclass(frozen=True, slots=True)
class Score:
    """Value of a metric."""

    value: float
    signature: str | None = None  # of the metric and its settings
    lower_is_better: bool = False

    def is_better_than(self, best: float | None) -> bool:
        """Whether this is better than a value; any number is better than None, and what is no number never is."""
        if not math.isfinite(self.value) or best is None:
            return math.isfinite(self.value)
        return self.value < best if self.lower_is_better else self.value > best


@dataclass(frozen=True, slots=True)
class Validation:
    """Result of a validation."""

    nll_nats: float  # per target token, without label smoothing; the loss of each item, if it is not of tokens
    scores: Mapping[str, Score] = field(default_factory=dict)  # by metric name
    is_of_tokens: bool = True  # whether the loss is that of tokens, which have a perplexity

    def by(self, name: str) -> Score:
        """Return the score of a name; "loss" and "perplexity" give the loss. Raises TrainingError if there is none."""
        known = ["loss", *(["perplexity"] if self.is_of_tokens else []), *self.scores]
        if name not in known:
            raise TrainingError(
                f"training.best_by = {name!r} is no score of the validation, which gives {', '.join(known)}"
            )
        return self.scores.get(name, Score(self.nll_nats, lower_is_better=True))


class Validate(Protocol):
    """Callable that evaluates the model on the dev set."""

    def __call__(self, should_stop: Callable[[], bool], /) -> Validation | None:
        """Validate once; None, on all ranks, if ``should_stop`` interrupted any of them."""


@dataclass(frozen=True, slots=True)
class ValidationRecord:
    """Record of a validation."""

    update: int
    nll_nats: float  # per target token, without label smoothing
    scores: Mapping[str, Score]  # by metric name
    is_best: bool
    elapsed_s: float
    is_of_tokens: bool = True  # whether the loss is that of tokens

    kind = "validation"

    @property
    def perplexity(self) -> float | None:
        """Perplexity per token (section 6.2); None if the loss is not that of tokens."""
        return perplexity(self.nll_nats, 1) if self.is_of_tokens else None


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """Record of a saved checkpoint."""

    update: int
    path: str
    elapsed_s: float

    kind = "checkpoint"


@dataclass(frozen=True, slots=True)
class SkipRecord:
    """Record of an update skipped for a non-finite loss or gradient."""

    update: int  # the last completed one
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
        """Remove the records written after ``state`` was saved: the resumed run will write them again."""
        if os.path.lexists(self.path):
            with open_regular(self.path) as stream:
                lines = list(decoded_lines(stream, str(self.path)))
            if lines and not _is_record(lines[-1]):
                lines.pop()  # the process was killed while writing it
            for number, line in enumerate(lines, start=1):
                if not _is_record(line):
                    raise DataError(f"{self.path}:{number} is not a record; remove the line to resume")
            n_skipped = 0
            earlier = []
            for line in lines:
                record = json.loads(line)
                n_skipped += record["kind"] == SkipRecord.kind
                if _is_before(record, state, n_skipped=n_skipped):
                    earlier.append(line)
            write_lines(self.path, earlier)

    def __call__(self, record: Record) -> None:
        """Append one record."""
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
    """Whether a record was written before ``state`` was saved; ``n_skipped`` counts skip records up to this one."""
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
    """Return a record as JSON values, its kind first. NaN and Inf, which JSON lacks, become null.

    Each score and each measure of the objective becomes a top-level key; ``signature`` is that of the first.
    """
    fields: dict[str, Any] = {"kind": record.kind, **asdict(record)}
    fields.pop("is_logged", None), fields.pop("is_of_tokens", None)
    fields |= fields.pop("measures", {})
    if isinstance(record, ValidationRecord):
        fields |= {name: score["value"] for name, score in fields["scores"].items()}
        fields["signature"] = next((score["signature"] for score in fields.pop("scores").values()), None)
        fields |= {} if record.perplexity is None else {"perplexity": record.perplexity}
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in fields.items()
    }
