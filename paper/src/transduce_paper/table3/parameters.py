"""The numbers of parameters that Table 3 prints, by formula, and the vocabulary sizes that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

from transduce.model import cost_of
from transduce.recipes import TABLE_3
from transduce_paper.report import Cell, Claim, Table, agreement
from transduce_paper.table3.rows import ROWS

__all__ = ["about_vocabularies", "claim_on_the_vocabulary", "parameters_table", "vocabularies_that_fit"]

PRINTED_VOCABULARY = 37_000  # section 5.1
# Vocabulary sizes for which the parameter formula gives the printed counts: one for big, another for the other rows.
VOCABULARIES = (PRINTED_VOCABULARY, 41_100, 36_000)


def parameters_table() -> Table:
    """Return the parameters of the paper's sizes by formula, for several vocabularies, beside the printed ones."""
    rows: list[tuple[Cell, ...]] = []
    for name, printed in ROWS.items():
        model = TABLE_3[name]().model
        counts = [cost_of(model.with_vocabulary(size, size)).parameters / 1e6 for size in VOCABULARIES]
        fitting = [
            f"{size:,}" for size, count in zip(VOCABULARIES, counts, strict=True) if printed.millions == round(count)
        ]
        rows.append((name, printed.millions, *counts, ", ".join(fitting) if printed.millions else None))
    columns = tuple(f"V = {size:,}" for size in VOCABULARIES)
    return Table(
        "-parameters", ("row", "paper", *columns, "agrees for V ="), tuple(rows), formats=dict.fromkeys(columns, ".2f")
    )


def vocabularies_that_fit(names: Sequence[str]) -> tuple[int, int] | None:
    """Return the range of vocabulary sizes for which those rows round to the printed counts; None if there is none.

    >>> vocabularies_that_fit(["big"])
    (35368, 36344)
    """
    lowest, highest = 0.0, float("inf")
    for name in names:
        printed, model = ROWS[name].millions, TABLE_3[name]().model
        if printed is None:
            continue
        core = cost_of(model).parameters_without_embeddings
        lowest = max(lowest, ((printed - 0.5) * 1e6 - core) / model.d_model)
        highest = min(highest, ((printed + 0.5) * 1e6 - core) / model.d_model)
    return (ceil(lowest), floor(highest)) if ceil(lowest) <= floor(highest) else None


def about_vocabularies() -> str:
    """Say which vocabulary sizes give the printed counts."""
    without_big = [name for name in ROWS if name != "big"]
    ranges = []
    for names, words in ((without_big, "all rows but big"), (["big"], "big"), (list(ROWS), "all rows")):
        fits = vocabularies_that_fit(names)
        ranges.append(f"{words}: {'none' if fits is None else f'{fits[0]:,} to {fits[1]:,}'}")
    return f"Vocabulary sizes for which the formula rounds to the printed counts: {'; '.join(ranges)}."


def claim_on_the_vocabulary() -> Claim:
    """Return the sentence on the size of the vocabulary, held against the parameters of Table 3."""
    base = TABLE_3["base"]().model
    millions = cost_of(base.with_vocabulary(PRINTED_VOCABULARY, PRINTED_VOCABULARY)).parameters / 1e6
    return Claim(
        "a shared source-target vocabulary of about 37000 tokens",
        "section 5.1",
        agreement(round(millions) == ROWS["base"].millions),
        f"With it base has {millions:.1f} million parameters, in Table 3 {ROWS['base'].millions}."
        f" {about_vocabularies()}",
        "arithmetic",
    )
