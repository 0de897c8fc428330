"""What Table 2 has at scale hours besides its systems: the settings each was tried with, and the amounts of text."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean

from transduce_paper.report import Cell, Table
from transduce_paper.run_records import RunRecord, are_trained_to_the_end
from transduce_paper.table2.systems import N_TRIED_PAIRS, N_TRIED_UPDATES, TRIED, Tried
from transduce_paper.table2.training import TRANSFORMER, Trained

__all__ = ["about_amounts", "amounts_table", "longer_tables", "settings_table"]


def settings_table(tries: Mapping[str, Mapping[Tried, RunRecord]]) -> Table:
    """Make the table of dev perplexities by system and settings."""
    rows: list[tuple[Cell, ...]] = []
    for name, records in tries.items():
        perplexities = [records[tried].dev_perplexity for tried in TRIED]
        rows.append((name, *perplexities, str(TRIED[perplexities.index(min(perplexities))])))
    columns = ("system", *map(str, TRIED), "chosen")
    caption = (
        f"Dev perplexity of each system with each of {len(TRIED)} settings, after {N_TRIED_UPDATES:,} updates on"
        f" {N_TRIED_PAIRS:,} pairs. The best are those of all its other runs."
    )
    return Table("-settings", columns, tuple(rows), caption, dict.fromkeys(columns[1:-1], ".2f"))


def amounts_table(systems: Mapping[str, Trained], n_all: int) -> Table:
    """Make the table of BLEU by system and number of training pairs."""
    amounts = list(next(iter(systems.values())).on_fewer)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(each.on_fewer[n_pairs].bleu for n_pairs in amounts), each.bleu) for name, each in systems.items()
    )
    columns = ("system", *(f"{n_pairs:,} pairs" for n_pairs in (*amounts, n_all)))
    updates = ", ".join(f"{systems[TRANSFORMER].on_fewer[n_pairs].updates:,}" for n_pairs in amounts)
    caption = (
        f"BLEU on the test text by the number of training pairs: {updates} and"
        f" {systems[TRANSFORMER].records[0].updates:,} updates, seed 1 but for the last column, which is that above."
    )
    return Table("-amounts", columns, rows, caption, dict.fromkeys(columns[1:], ".2f"))


def about_amounts(systems: Mapping[str, Trained], n_all: int) -> str:
    """Say how far the Transformer is before or behind the best other system at each number of pairs."""
    places: list[str] = []
    for n_pairs in (*systems[TRANSFORMER].on_fewer, n_all):
        runs = {name: each.records if n_pairs == n_all else [each.on_fewer[n_pairs]] for name, each in systems.items()}
        bleus = {name: mean(run.bleu for run in of_system) for name, of_system in runs.items()}
        best = max((name for name in bleus if name != TRANSFORMER), key=lambda name: bleus[name])
        worse = min(TRANSFORMER, best, key=lambda name: bleus[name])
        end = "" if are_trained_to_the_end(runs[worse]) else "; not trained to the end"
        places.append(f"with {n_pairs:,} pairs {bleus[TRANSFORMER] - bleus[best]:+.1f} BLEU ({best}{end})")
    return f"The Transformer against the best other system: {', '.join(places)}."


def longer_tables(systems: Mapping[str, Trained]) -> list[Table]:
    """Make the table of the longer runs beside those of the same settings and seed, if there are some."""
    pairs = {name: (each.records[0], each.longer) for name, each in systems.items() if each.longer is not None}
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, run.updates, run.bleu, run.dev_perplexity, 100 * (run.last_fall or 0.0), run.minutes)
        for name, runs in pairs.items()
        for run in runs
    )
    columns = ("system", "updates", "BLEU", "dev PPL", "last fall, %", "minutes")
    caption = (
        "Longer runs of the systems that lead, and their runs of the table above with the same seed. The last fall is"
        " that of dev perplexity over the last tenth of the updates."
    )
    formats = {"updates": ",", "BLEU": ".2f", "dev PPL": ".2f", "last fall, %": ".2f", "minutes": ".1f"}
    return [Table("-longer", columns, rows, caption, formats)] if rows else []
