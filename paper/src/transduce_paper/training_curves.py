"""The course of a training: perplexity and BLEU of each validation, kept beside the record of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transduce_paper.experiments import Experiments
from transduce_paper.run_records import Experiment

__all__ = ["ValidationPoint", "best_update", "last_fall", "training_curve"]

METRICS = "metrics.jsonl"  # in the run folder, beside the model


@dataclass(frozen=True, slots=True)
class ValidationPoint:
    """A validation during training."""

    update: int
    tgt_tokens: int  # since the start of the run
    minutes: float  # of training alone, without validations
    perplexity: float  # per token, not smoothed
    bleu: float | None  # of the first dev sentences


def training_curve(experiments: Experiments, experiment: Experiment) -> list[ValidationPoint]:
    """Return the validations of a run, in order; they are read from its metrics once and cached beside its record."""
    cached = experiments.cached_measurement(experiment, "curve", _validations, settings={})
    return [ValidationPoint(**values) for values in cached]


def best_update(curve: Sequence[ValidationPoint]) -> int:
    """Return the update of the lowest dev perplexity."""
    return min(curve, key=lambda point: point.perplexity).update


def last_fall(curve: Sequence[ValidationPoint]) -> float:
    """Return the share by which the dev perplexity fell over the last tenth of the updates; below 0 if it rose."""
    end = curve[-1]
    before = [point for point in curve if point.update <= 0.9 * end.update]
    return 1 - end.perplexity / before[-1].perplexity


def _validations(model_folder: Path) -> list[dict[str, Any]]:
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
                record["update"], latest["tgt_tokens"], round(minutes, 4), record["perplexity"], record.get("bleu")
            )
            points.append(asdict(point))
    return points
