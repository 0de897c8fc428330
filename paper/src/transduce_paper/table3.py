"""Table 3: variations on the base model. All 20 rows, and whether each has the effect that it has in the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import ceil, floor
from pathlib import Path
from statistics import mean

from transduce.model import cost_of
from transduce.recipes import TABLE_3
from transduce_paper.experiments import Experiments, Scale
from transduce_paper.report import (
    Cell,
    Report,
    Table,
    how_to_reproduce,
    picture,
)  # fmt: skip
from transduce_paper.request import Request
from transduce_paper.run_records import RunRecord, machines
from transduce_paper.sizes import size_description
from transduce_paper.table3_claims import claims_on_rows, deciding_rows
from transduce_paper.table3_effects import (
    NEGLIGIBLE_BLEU,
    NEGLIGIBLE_PPL,
    bleu_of,
    effect_on_bleu,
    effect_on_perplexity,
    margin_of,
    perplexities_of,
)
from transduce_paper.table3_rows import (
    ROWS,
    about_training,
    learning_rate_description,
    require_rows,
    row_at_scale,
    row_experiments,
    row_records,
)  # fmt: skip
from transduce_paper.table_plots import RowPoint, draw_perplexities

__all__ = ["is_recorded", "make_table3", "vocabularies_that_fit"]

# Vocabulary sizes for which the parameter formula gives the printed counts: one for big, another for the other rows.
VOCABULARIES = (37_000, 41_100, 36_000)


def make_table3(experiments: Experiments, request: Request) -> Report:
    """Train every row, or those of the request, and compare them with the paper's."""
    if request.rows:
        return _report_of_rows(experiments, request)
    records = row_records(experiments, experiments.pick(list(ROWS), test=["base", "C-N2"]), jobs=request.jobs)
    deciding = deciding_rows(records)
    return Report(
        "Table 3: variations on the Transformer",
        (
            _sizes({"base": records["base"]}),
            about_training(records),
            _effects(records, records["base"]),
            picture("table3", "Perplexity of each row against base: ours with the interval of seeds, the paper's"),
            how_to_reproduce(
                "table3",
                scale=experiments.scale,
                seeds=f"seed 1, base with seeds 1 to {len(records['base'])}",
                hardware=machines(records["base"]),
                note="One row alone: `transduce paper table3 --row NAME`.",
            ),
            _details(experiments.scale, records["base"]),
            "## Parameters of the paper's sizes\n\nMillions of parameters by formula for vocabularies of V tokens,"
            " beside the printed ones.",
            _parameters(),
            _about_vocabularies(),
        ),
        drawings={"table3": lambda path: _draw(records, path)},
        claims=() if experiments.scale == "test" else claims_on_rows(records, deciding),
        finding=_summary(records, deciding),
        name="table3",
    )


def is_recorded(experiments: Experiments) -> bool:
    """Whether every run of the table has a record."""
    return all(experiments.record_path(run).exists() for name in ROWS for run in row_experiments(experiments, name))


def _report_of_rows(experiments: Experiments, request: Request) -> Report:
    """Report some rows alone. They are compared with base only if all its seeds have been trained."""
    require_rows(request.rows)
    names = tuple(dict.fromkeys(request.rows))
    records = row_records(experiments, names, jobs=request.jobs)
    seeds = row_experiments(experiments, "base")
    has_base = all(experiments.record_path(each).exists() for each in seeds)
    base = [experiments.run(each) for each in seeds] if has_base else None
    sections: list[str | Table] = [_sizes(records), about_training(records), _effects(records, base)]
    if base is None:
        sections.append(
            f"Base has not been trained here, so effects are unknown: `transduce paper table3 --row base` trains its"
            f" {len(seeds)} seeds."
        )
    options = " ".join(f"--row {name}" for name in names)
    sections.append(
        how_to_reproduce(
            f"table3 {options}",
            scale=experiments.scale,
            seeds=f"seeds 1 to {len(seeds)} of base, seed 1 of other rows" if "base" in names else "seed 1",
            hardware=machines(record for row in records.values() for record in row),
        )
    )
    return Report(f"Table 3, rows {', '.join(names)}", tuple(sections), name="table3-rows")


def _summary(records: Mapping[str, Sequence[RunRecord]], deciding: Set[str]) -> str:
    """Count the rows whose effect on perplexity is, and is not, that of the paper; only trained rows count."""
    base = perplexities_of(records["base"])
    effects = {name: effect_on_perplexity(name, row[0], base) for name, row in records.items() if name != "base"}
    counting = [name for name in effects if name in deciding]
    n_same, n_opposite, n_ours = (
        sum(effect == each for effect in effects.values()) for each in ("as in the paper", "opposite", "ours only")
    )
    n_noise = len(effects) - n_same - n_opposite - n_ours
    only_ours = f", {n_ours} where the paper has no effect" if n_ours else ""
    return (
        f"{len(counting)} of {len(effects)} comparisons with base are of models trained far enough to decide. As they"
        f" are, {n_same} rows change the perplexity as in the paper by more than another seed does"
        f" ({margin_of(base):.2f}), {n_opposite} in the opposite direction{only_ours}, and {n_noise} by less."
    )


def _sizes(records: Mapping[str, Sequence[RunRecord]]) -> str:
    """Describe the paper's and our model and text of each row."""
    sizes = (
        f"Row {name}: paper {size_description(row_at_scale(name, 'paper'))}; ours {size_description(row[0].config)}."
        for name, row in records.items()
    )
    return " ".join(
        (
            *sizes,
            "Every row changes what the paper changes, in the same ratio. Numbers of the two sizes cannot be compared",
            "with each other, only their differences from base.",
        )
    )


def _draw(records: Mapping[str, Sequence[RunRecord]], path: Path) -> None:
    base, first = perplexities_of(records["base"]), records["base"][0]
    margin = margin_of(base)
    rows = [
        RowPoint(
            name=name,
            change=ROWS[name].change if name != "big" else "d_model 1024, h 16, P_drop 0.3",
            group=name.partition("-")[0],
            perplexity=row[0].dev_perplexity,
            paper_perplexity=ROWS[name].perplexity,
            effect=effect_on_perplexity(name, row[0], base),
        )
        for name, row in records.items()
        if name != "base"
    ]
    draw_perplexities(
        rows,
        base=(mean(base), mean(base) - margin, mean(base) + margin),
        paper_base=ROWS["base"].perplexity,
        titles=(
            f"Ours: base {size_description(first.config)}",
            f"Paper: base {size_description(row_at_scale('base', 'paper'))}",
        ),
        labels=(
            f"perplexity, {first.dev_text}; line: base, {mean(base):.2f}",
            f"perplexity, newstest2013; line: base, {ROWS['base'].perplexity:.2f}",
        ),
        path=path,
    )


def _details(scale: Scale, base: Sequence[RunRecord]) -> str:
    """Describe the runs: model, training, scores."""
    first = base[0]
    model, training, data, search = (first.config[table] for table in ("model", "training", "data", "search"))
    corpora = data["corpus"] if isinstance(data["corpus"], str) else ", ".join(data["corpus"])
    return "\n".join(
        (
            "## Details\n",
            f"- Model, scale {scale}: {model['n_encoder_layers']} + {model['n_decoder_layers']} layers, d_model"
            f" {model['d_model']}, d_ff {model['d_ff']}, d_k {model['d_k']}, {first.parameters / 1e6:.2f} million"
            f" parameters, on {corpora} ({data['direction']}, vocabulary {model['tgt_vocab_size']:,}).",
            f"- Training: {first.updates:,} updates, {training['warmup_steps']:,} of them warm-up"
            f"{learning_rate_description(training)}, {first.tgt_tokens:,} target tokens, {training['precision']},"
            f" {first.minutes:.1f} minutes{_beside(first.runs_at_once - 1)}. No checkpoint is averaged (section 6.2).",
            f"- PPL and BLEU are of {first.dev_text}, the paper's of newstest2013. PPL is per token, without label"
            " smoothing.",
            f"- BLEU: `{first.dev_scores['sacrebleu']['signature']}`. Tokenised BLEU with compounds split, like the"
            f" paper's: `{first.dev_scores['paper_bleu']['signature']}`. Beam {search['beam_size']}, alpha"
            f" {search['alpha']}.",
            f"- Base has seeds 1 to {len(base)}; its numbers are their means. The other rows have seed 1.",
        )
    )


def _beside(n_others: int) -> str:
    return f", beside {n_others} other runs, so minutes say little about speed" if n_others else ""


def _effects(records: Mapping[str, Sequence[RunRecord]], base: Sequence[RunRecord] | None) -> Table:
    """Make the table of rows; without the seeds of ``base``, effects are left empty."""
    perplexities, bleus = perplexities_of(base or []), [bleu_of(record) for record in base or []]
    rows: list[tuple[Cell, ...]] = []
    for name, of_row in records.items():
        printed, record, is_compared = ROWS[name], of_row[0], base is not None and name != "base"
        rows.append(
            (
                name,
                printed.change,
                printed.perplexity,
                mean(perplexities_of(of_row)),
                effect_on_perplexity(name, record, perplexities) if is_compared else None,
                printed.bleu,
                mean(map(bleu_of, of_row)),
                effect_on_bleu(name, record, bleus) if is_compared else None,
                mean(bleu_of(each, "paper_bleu") for each in of_row),
                record.parameters / 1e6,
                record.updates,
                "not known" if record.last_fall is None else "yes" if record.is_trained_to_the_end else "no",
                record.minutes,
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
        "million parameters", "updates", "trained to the end", "minutes",
    )  # fmt: skip
    n_comparisons = 2 * len(records.keys() - {"base"})
    caption = "" if base is None else _caption(perplexities, bleus, n_comparisons=n_comparisons)
    return Table("", columns, tuple(rows), caption, formats)


def _caption(perplexities: Sequence[float], bleus: Sequence[float], *, n_comparisons: int) -> str:
    return " ".join(
        (
            f"An effect is a difference from base above {margin_of(perplexities):.3f} PPL or {margin_of(bleus):.2f}",
            "BLEU, the 95 % prediction interval of another seed (Student's t over the"
            f" {len(perplexities)} seeds of base).",
            '"as in the paper": same direction; "opposite": the other direction; "paper only" and "ours only": only',
            f"one of the two has an effect. Differences in the paper up to {NEGLIGIBLE_PPL} PPL or {NEGLIGIBLE_BLEU}",
            "BLEU count as none.",
            f"With {n_comparisons} comparisons at 95 %, about {n_comparisons / 20:.0f} effects are expected by chance."
            if n_comparisons > 10
            else "",
        )
    ).strip()


def _parameters() -> Table:
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


def _about_vocabularies() -> str:
    without_big = [name for name in ROWS if name != "big"]
    ranges = []
    for names, words in ((without_big, "all rows but big"), (["big"], "big"), (list(ROWS), "all rows")):
        fits = vocabularies_that_fit(names)
        ranges.append(f"{words}: {'none' if fits is None else f'{fits[0]:,} to {fits[1]:,}'}")
    return f"Vocabulary sizes for which the formula rounds to the printed counts: {'; '.join(ranges)}."
