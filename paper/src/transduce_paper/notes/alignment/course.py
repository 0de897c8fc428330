"""What PPO changes: the means of each rollout while it trains, and responses before and after."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce_paper.drawing import COLOURS, new_panels, save_svg
from transduce_paper.experiments import Experiments
from transduce_paper.notes.alignment.judging import drawn_responses, test_instructions
from transduce_paper.report import Table
from transduce_paper.run_records import Experiment
from transduce_paper.training_curves import METRICS

__all__ = ["MEASURED", "draw_rollouts", "rollouts_of", "samples_table"]

# By key of the metrics: title of its panel.
MEASURED: Mapping[str, str] = {
    "score": "score of the reward model",
    "kl": "KL from the fine-tuned model, nats",
    "length": "tokens of a response",
    "clipped": "clipped ratios, share",
    "value_loss": "loss of the value function",
    "entropy": "entropy of a token, nats",
}
N_OF_KIND = 2  # shown responses to each kind of instruction

Rollout = Mapping[str, float]


def rollouts_of(experiments: Experiments, run: Experiment) -> list[Rollout]:
    """Return the means of each rollout of a run of PPO with its update, cached beside its record."""
    return list(experiments.cached_measurement(run, "rollouts", _rollouts, settings={}))


def _rollouts(model_folder: Path) -> list[dict[str, Any]]:
    records = map(json.loads, (model_folder.parent / METRICS).read_text(encoding="utf-8").splitlines())
    return [
        {"update": record["update"]} | {name: round(record[name], 5) for name in MEASURED}
        for record in records
        if record["kind"] == "update"
    ]


def draw_rollouts(rollouts: Mapping[str, Sequence[Rollout]], path: Path) -> None:
    """Draw a panel for each measurement, with a curve for each run by its name."""
    figure, panels = new_panels(9.0, 4.6, n_rows=2, n_columns=3)
    for panel, (key, title) in zip(panels, MEASURED.items(), strict=True):
        for colour, (name, of_run) in zip(COLOURS, rollouts.items(), strict=False):
            panel.plot([each["update"] for each in of_run], [each[key] for each in of_run], color=colour, label=name)
        panel.set_title(title, loc="left", fontsize=9)
    for panel in panels[3:]:
        panel.set_xlabel("update")
    panels[0].legend(frameon=False, fontsize=8)
    save_svg(figure, path)


def samples_table(experiments: Experiments, before: Experiment, after: Experiment) -> Table:
    """Return responses to the first held-out instructions of each kind, drawn before and after PPO."""

    def measure(folder: Path) -> list[dict[str, Any]]:
        of_kind: dict[str, int] = {}
        chosen = []
        for each in test_instructions(100):
            of_kind[each.kind] = of_kind.get(each.kind, 0) + 1
            if of_kind[each.kind] <= N_OF_KIND:
                chosen.append(each)
        chosen.sort(key=lambda each: each.kind)
        texts = [
            drawn_responses(each, chosen, experiments.device) for each in (experiments.model_folder(before), folder)
        ]
        return [
            {"prompt": each.prompt, "ideal": each.response, "before": old, "after": new}
            for each, old, new in zip(chosen, *texts, strict=True)
        ]

    rows = experiments.cached_measurement(after, "samples", measure, settings={"of_kind": N_OF_KIND})
    cells = tuple((row["prompt"], row["ideal"], row["before"], row["after"]) for row in rows)
    return Table("-alignment-samples", ("instruction", "ideal", "SFT", "PPO"), cells)
