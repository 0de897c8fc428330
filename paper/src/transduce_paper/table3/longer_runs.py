"""What longer training might turn: models half way, and an estimate of them after twice the updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import Literal

from transduce_paper.run_records import RunRecord
from transduce_paper.training_curves import ValidationPoint

__all__ = ["Curves", "Decides", "Rows", "half_way", "twice_as_long"]

# How a comparison of two models decides: the worse one is trained to the end, or twice the updates would not turn it.
Decides = Literal["yes", "yes, by the estimate"]
Rows = Mapping[str, Sequence[RunRecord]]  # the runs of each model, one for each seed
Curves = Mapping[str, Sequence[Sequence[ValidationPoint] | None]]  # the validations of each, None if not kept


def half_way(rows: Rows, curves: Curves) -> Rows:
    """Return the rows with the perplexities that their runs had after half of the updates, by their validations.

    Without the runs whose validations are not kept.
    """
    before = {
        name: [
            replace(run, dev_perplexity=_half_way(curve))
            for run, curve in zip(runs, curves[name], strict=True)
            if curve is not None
        ]
        for name, runs in rows.items()
    }
    return {name: runs for name, runs in before.items() if runs}


def twice_as_long(rows: Rows, curves: Curves) -> Rows:
    """Return the rows as after twice the updates, if these gained once more what the second half has gained.

    So does what is trained to the end: its gain is that of another schedule. A run that overfits gains nothing. All
    seeds of a row gain the mean share of those with a curve, so that they differ by no more than before. It is an
    estimate, not a bound.
    """

    def longer(name: str, runs: Sequence[RunRecord]) -> list[RunRecord]:
        shares = [
            1.0 if run.overfits else min(1.0, run.dev_perplexity / _half_way(curve))
            for run, curve in zip(runs, curves[name], strict=True)
            if curve is not None
        ]
        return [replace(run, dev_perplexity=run.dev_perplexity * mean(shares)) if shares else run for run in runs]

    return {name: longer(name, runs) for name, runs in rows.items()}


def _half_way(curve: Sequence[ValidationPoint]) -> float:
    perplexity = next(point.perplexity for point in curve if 2 * point.update >= curve[-1].update)
    assert perplexity is not None
    return perplexity
