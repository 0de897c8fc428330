"""Rows (D) of Table 3 on less text: dropout is against over-fitting, so it should help more, the less text there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from transduce.recipes import with_settings
from transduce_paper.experiments import Experiments
from transduce_paper.report import Cell, Table
from transduce_paper.run_records import Experiment, RunRecord
from transduce_paper.table3.effects import bleu_of, mean_of, perplexity_of
from transduce_paper.table3.longer_runs import Rows
from transduce_paper.table3.rows import row_at_scale

__all__ = ["dropout_by_pairs", "dropout_experiments", "dropout_table"]

ROWS_OF_DROPOUT = ("D-drop0", "base", "D-drop2")  # P_drop 0, 0.1 and 0.2
UPDATES = {2_000: 4_500, 8_000: 9_000}  # by training pairs; the best checkpoint counts
N_VALIDATIONS = 15


def dropout_by_pairs(experiments: Experiments) -> dict[int, dict[str, RunRecord]]:
    """Train the rows of dropout on the first pairs of the captions, or read their records."""
    records = iter([experiments.run(each) for each in dropout_experiments(experiments)])
    return {n_pairs: {name: next(records) for name in ROWS_OF_DROPOUT} for n_pairs in UPDATES}


def dropout_experiments(experiments: Experiments) -> list[Experiment]:
    """Return the runs of each row on each number of pairs."""
    return [_on_pairs(experiments, n_pairs, name) for n_pairs in UPDATES for name in ROWS_OF_DROPOUT]


def _on_pairs(experiments: Experiments, n_pairs: int, name: str) -> Experiment:
    n_updates = UPDATES[n_pairs]
    interval = n_updates // N_VALIDATIONS
    settings = [
        f"data.max_pairs={n_pairs}", f"training.max_updates={n_updates}",
        f"training.validate_every_updates={interval}", f"training.checkpoint_every_updates={interval}",
    ]  # fmt: skip
    config = with_settings(row_at_scale(name, experiments.scale), settings)
    return experiments.experiment(f"dropout-{n_pairs}-pairs-{name}-seed1", config)


def dropout_table(on_less: Mapping[int, Mapping[str, RunRecord]], rows: Rows) -> Table:
    """Make the table of perplexity and BLEU by pairs and dropout; ``rows`` are those of all pairs."""
    lines = [(f"{n_pairs:,}", {name: [run] for name, run in runs.items()}) for n_pairs, runs in on_less.items()]
    runs: Sequence[tuple[str, Mapping[str, Sequence[RunRecord]]]] = [*lines, ("all", rows)]
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (
            n_pairs,
            *(mean_of(perplexity_of, of_row[name]) for name in ROWS_OF_DROPOUT),
            *(mean_of(bleu_of, of_row[name]) for name in ROWS_OF_DROPOUT),
        )
        for n_pairs, of_row in runs
    )
    rates = ("0", "0.1", "0.2")
    columns = ("pairs", *(f"PPL, P_drop {rate}" for rate in rates), *(f"BLEU, P_drop {rate}" for rate in rates))
    caption = "Dropout by the amount of text: the best checkpoint of each run, seed 1."
    return Table("-dropout", columns, cells, caption, dict.fromkeys(columns[1:], ".2f"))
