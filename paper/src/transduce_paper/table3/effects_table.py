"""The table of rows: the paper's scores beside ours, the effect of each row, and whether it decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from statistics import mean

from transduce_paper.intervals import NEARLY_IDENTICAL
from transduce_paper.report import Cell, Table
from transduce_paper.run_records import RunRecord, are_trained_to_the_end
from transduce_paper.table3.effects import (
    NEGLIGIBLE_BLEU,
    NEGLIGIBLE_PPL,
    bleu_of,
    change_of,
    effect_on_bleu,
    effect_on_perplexity,
    mean_of,
    minutes_of,
    perplexity_of,
)
from transduce_paper.table3.longer_runs import Decides, Rows
from transduce_paper.table3.rows import ROWS

__all__ = ["caption", "effects_table", "margins"]


def effects_table(rows: Rows, names: Sequence[str], deciding: Mapping[str, Decides], lengths: Set[str]) -> Table:
    """Make the table of those rows; if base is not among all ``rows``, effects are left empty.

    ``deciding`` are the ``deciding_rows``, and ``lengths`` the rows with runs of several lengths.
    """
    cells: list[tuple[Cell, ...]] = []
    for name in names:
        printed, runs, has_effect = ROWS[name], rows[name], "base" in rows and name != "base"
        first = runs[0]
        cells.append(
            (
                name,
                printed.change,
                printed.perplexity,
                mean_of(perplexity_of, runs),
                effect_on_perplexity(name, rows) if has_effect else None,
                printed.bleu,
                mean_of(bleu_of, runs),
                effect_on_bleu(name, rows) if has_effect else None,
                mean(bleu_of(run, "paper_bleu") for run in runs),
                first.parameters / 1e6,
                round(mean(run.updates for run in runs)),
                _trained(runs, is_of_several_lengths=name in lengths),
                deciding.get(name, "no") if has_effect else None,
                mean_of(minutes_of, runs),
            )
        )
    formats = {
        "paper PPL": ".2f",
        "PPL": ".2f",
        "paper BLEU": ".1f",
        "BLEU": ".2f",
        "million parameters": ".2f",
        "tokenised BLEU": ".2f",
        "updates": ",",
        "minutes": ".1f",
    }
    columns = (
        "row", "change", "paper PPL", "PPL", "PPL's effect", "paper BLEU", "BLEU", "BLEU's effect", "tokenised BLEU",
        "million parameters", "updates", "trained to the end", "decides", "minutes",
    )  # fmt: skip
    is_compared = "base" in rows and len(rows) > 1
    return Table("", columns, tuple(cells), caption(rows) if is_compared else "", formats)


def _trained(runs: Sequence[RunRecord], *, is_of_several_lengths: bool) -> str:
    if is_of_several_lengths:
        return "best of several lengths"
    return "not known" if runs[0].last_fall is None else "yes" if are_trained_to_the_end(runs) else "no"


def margins(rows: Rows, score: Callable[[RunRecord], float]) -> list[float]:
    """Return half of the interval of seeds for each number of seeds that a row has, the largest number first."""
    widths = {len(runs): change_of(name, rows, score).half_width for name, runs in rows.items() if name != "base"}
    return [width for _, width in sorted(widths.items(), reverse=True)]


def caption(rows: Rows) -> str:
    """Return what the effects are, how wide the intervals, and which rows decide."""
    n_comparisons, several = 2 * (len(rows) - 1), [len(runs) for runs in rows.values() if len(runs) > 1]
    perplexities = " or ".join(f"{margin:.3f}" for margin in margins(rows, perplexity_of))
    bleus = " or ".join(f"{margin:.2f}" for margin in margins(rows, bleu_of))
    pooled = f"the {several[0]} seeds of base" if len(several) == 1 else f"{len(several)} rows of several seeds, pooled"
    of_several = " (rows of several seeds the first, of one the second)" if len(several) > 1 else ""
    return " ".join(
        (
            f"An effect is a difference from base above {perplexities} PPL or {bleus}",
            f"BLEU{of_several}, the 95 % interval of seeds (Student's t over {pooled}).",
            '"as in the paper": same direction; "opposite": the other direction; "paper only" and "ours only": only',
            f"one of the two has an effect. Differences in the paper up to {NEGLIGIBLE_PPL} PPL or {NEGLIGIBLE_BLEU}",
            "BLEU count as none. An effect on perplexity decides if the worse of the two models is trained to the end,",
            "or the best of several lengths; by the estimate, if twice the updates would not turn it. The lack of an",
            f"effect decides if both are and the whole interval is within {NEARLY_IDENTICAL:.0%} of base's perplexity.",
            f"With {n_comparisons} comparisons at 95 %, about {n_comparisons / 20:.0f} effects are expected by chance."
            if n_comparisons > 10
            else "",
        )
    ).strip()
