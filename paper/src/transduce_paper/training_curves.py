"""The course of a training: perplexity and BLEU of each validation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["ValidationPoint", "last_fall", "validations"]

METRICS = "metrics.jsonl"  # in the run folder, beside the model


@dataclass(frozen=True, slots=True)
class ValidationPoint:
    """A validation during training."""

    update: int
    tgt_tokens: int  # since the start of the run
    minutes: float  # of training alone, without validations
    perplexity: float | None  # per token, not smoothed; None of tasks that predict no tokens
    bleu: float | None  # of the first dev sentences


def last_fall(model_folder: Path) -> float | None:
    """Return the share by which the dev perplexity fell over the last tenth of a run's updates; below 0 if it rose.

    With few validations it is the fall since the last one before that tenth; None if there is none.
    """
    *earlier, end = validations(model_folder)
    before = [point["perplexity"] for point in earlier if point["update"] <= 0.9 * end["update"]]
    return round(1 - end["perplexity"] / before[-1], 6) if before and before[-1] else None


def validations(model_folder: Path) -> list[dict[str, Any]]:
    """Return the validations in the metrics of the run that made a model."""
    points = list[dict[str, Any]]()
    latest: Mapping[str, Any] = {"elapsed_s": 0.0, "tgt_tokens": 0}  # the record of the update before
    validation_s = 0.0
    for line in (model_folder.parent / METRICS).read_text(encoding="utf-8").splitlines():
        record: Mapping[str, Any] = json.loads(line)
        if record["kind"] == "update":
            latest = record
        elif record["kind"] == "validation":
            validation_s += record["elapsed_s"] - latest["elapsed_s"]
            minutes = (record["elapsed_s"] - validation_s) / 60
            point = ValidationPoint(
                record["update"], latest["tgt_tokens"], round(minutes, 4), record.get("perplexity"), record.get("bleu")
            )
            points.append(asdict(point))
    return points
