"""Table 3: variations on the base model. All 20 rows, and whether each has the effect that it has in the paper."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from transduce_paper.experiments import Experiments, Scale
from transduce_paper.report import Claim, Report, Table, how_to_reproduce, picture
from transduce_paper.request import Request
from transduce_paper.run_records import Experiment, RunRecord, machines, precisions
from transduce_paper.sizes import size_description
from transduce_paper.table3.claims import claims_on_rows, deciding_rows, rows_at_their_best
from transduce_paper.table3.dropout import dropout_by_pairs, dropout_experiments, dropout_table
from transduce_paper.table3.effects import (
    LEARNED,
    NOT_LEARNED,
    bleu_of,
    effect_on_perplexity,
    has_learned,
    is_as_in_the_paper,
    mean_of,
    minutes_of,
    perplexity_of,
)
from transduce_paper.table3.effects_table import effects_table, margins
from transduce_paper.table3.longer_runs import Decides, Rows, half_way, twice_as_long
from transduce_paper.table3.parameters import about_vocabularies, claim_on_the_vocabulary, parameters_table
from transduce_paper.table3.rows import (
    ROWS,
    about_rates,
    about_training,
    learning_rate_description,
    require_rows,
    row_at_scale,
    row_experiments,
    row_records,
    rows_of_several_lengths,
    runs_of_row,
    runs_of_row_alone,
)
from transduce_paper.table_plots import RowPoint, draw_perplexities

__all__ = ["make_table3", "recorded", "runs_of_table"]


def make_table3(experiments: Experiments, request: Request) -> Report:
    """Train every row, or those of the request, and compare them with the paper's.

    Some rows are compared with base only if all its seeds have been trained.
    """
    if request.rows:
        return _report_of_rows(experiments, request)
    rows = row_records(experiments, experiments.pick(list(ROWS), test=["base", "C-N2"]), jobs=request.jobs)
    later, about_length = _length(experiments, rows)
    lengths = rows_of_several_lengths(experiments.scale)
    at_best = rows_at_their_best(rows, lengths)
    deciding = deciding_rows(rows, at_best, later)
    return Report(
        "Table 3: variations on the Transformer",
        (
            _sizes({"base": rows["base"]}),
            about_training(rows, lengths),
            *_not_learned(rows),
            *about_length,
            effects_table(rows, list(rows), deciding, lengths),
            picture("table3", "Perplexity of each row against base: ours with the interval of seeds, the paper's"),
            how_to_reproduce(
                "table3",
                scale=experiments.scale,
                seeds=_seeds(rows),
                hardware=machines(rows["base"]),
                note="One row alone: `transduce paper table3 --row NAME`.",
            ),
            _details(experiments.scale, rows),
            *_on_less_text(experiments, rows),
            "## Parameters of the paper's sizes\n\nMillions of parameters by formula for vocabularies of V tokens,"
            " beside the printed ones.",
            parameters_table(),
            about_vocabularies(),
        ),
        drawings={"table3": lambda path: _draw(rows, path)},
        claims=()
        if experiments.scale == "test"
        else (*claims_on_rows(rows, deciding, at_best), claim_on_the_vocabulary()),
        finding=_summary(rows, deciding),
        name="table3",
    )


def runs_of_table(experiments: Experiments) -> list[Experiment]:
    """Return every run that the report reads: those of the rows, and at scale hours those of dropout on less text."""
    of_rows = [run for name in ROWS for run in runs_of_row(experiments, name)]
    return of_rows + (dropout_experiments(experiments) if experiments.scale == "hours" else [])


def recorded(experiments: Experiments) -> Request | None:
    """Return the request for what is recorded: for all, for base and other rows (all lengths of a seed), or none."""
    if _have_records(experiments, runs_of_table(experiments)):
        return Request()
    rows = tuple(name for name in ROWS if _have_records(experiments, runs_of_row_alone(experiments, name)))
    return Request(rows=rows, only_recorded=True) if "base" in rows and len(rows) > 1 else None


def _have_records(experiments: Experiments, runs: Sequence[Experiment]) -> bool:
    return all(experiments.record_path(run).exists() for run in runs)


def _report_of_rows(experiments: Experiments, request: Request) -> Report:
    """Report some rows alone: trained with their first seed, and other seeds as far as they are recorded."""
    require_rows(request.rows)
    names = tuple(dict.fromkeys(request.rows))
    rows = row_records(experiments, names, jobs=request.jobs, runs_of=runs_of_row_alone)
    of_base = row_experiments(experiments, "base")
    lengths = rows_of_several_lengths(experiments.scale)
    sections: list[str | Table] = [_sizes(rows), about_training(rows, lengths), *_missing(experiments, names)]
    claims: tuple[Claim, ...] = ()
    finding = ""
    if _have_records(experiments, of_base):
        compared = {"base": [experiments.run(each) for each in of_base], **rows}
        later, about_length = _length(experiments, compared)
        at_best = rows_at_their_best(compared, lengths)
        deciding = deciding_rows(compared, at_best, later)
        sections += [
            *_not_learned(compared),
            *about_length,
            effects_table(compared, names, deciding, lengths),
            _details(experiments.scale, compared),
        ]
        claims = claims_on_rows(compared, deciding, at_best)
        finding = _summary(compared, deciding) if len(compared) > 1 else ""
    else:
        sections += [
            effects_table(rows, names, {}, lengths),
            f"Base has not been trained here, so effects are unknown: `transduce paper table3 --row base` trains its"
            f" {len(of_base)} seeds.",
        ]
    options = "--recorded" if request.only_recorded else " ".join(f"--row {name}" for name in names)
    sections.append(
        how_to_reproduce(
            f"table3 {options}",
            scale=experiments.scale,
            seeds=_seeds(rows),
            hardware=machines(record for row in rows.values() for record in row),
        )
    )
    title = f"Table 3, rows {', '.join(names)}"
    return Report(title, tuple(sections), claims=claims, finding=finding, name="table3-rows")


def _missing(experiments: Experiments, names: Sequence[str]) -> list[str]:
    """Return a paragraph on the rows of which runs are missing; a row not shown has its first seed only in part."""
    parts = []
    for name in ROWS:
        runs = runs_of_row(experiments, name) if name in names else runs_of_row_alone(experiments, name)
        n_recorded = sum(experiments.record_path(run).exists() for run in runs)
        if 0 < n_recorded < len(runs):
            parts.append(f"{name} ({n_recorded} of {len(runs)} runs{'' if name in names else ', so not shown'})")
    return [f"Recorded in part, of seeds or lengths: {', '.join(parts)}."] if parts else []


def _seeds(rows: Rows) -> str:
    """Say which seeds the rows have."""
    several = {name: len(runs) for name, runs in rows.items() if len(runs) > 1}
    listed = ", ".join(f"{name} with seeds 1 to {n}" for name, n in several.items())
    return f"seed 1, {listed}" if listed else "seed 1"


def _summary(rows: Rows, deciding: Mapping[str, Decides]) -> str:
    """Count the rows that decide, and those whose effect is, and is not, that of the paper."""
    others = [name for name in rows if name != "base"]
    counts = Counter(effect_on_perplexity(name, rows) for name in others)
    n_same, n_opposite, n_ours = (counts[each] for each in ("as in the paper", "opposite", "ours only"))
    n_noise = sum(counts[each] for each in ("none in either", "paper only"))
    only_ours = f", {n_ours} where the paper has no effect" if n_ours else ""
    how = Counter(deciding.values())
    strict, by_estimate = how["yes"], how["yes, by the estimate"]
    since = ", since the worse model is trained to the end" if strict else ""
    more = f"; {by_estimate} more by the estimate for twice the updates" if by_estimate else ""
    return (
        f"{strict} of {len(others)} comparisons with base decide{since}{more}."
        f" As they are, {n_same} rows change the perplexity as in the paper by more than another seed does,"
        f" {n_opposite} in the opposite direction{only_ours}, and {n_noise} by less{_counted_out(counts)}. In"
        f" perplexity and BLEU, {sum(is_as_in_the_paper(name, rows) for name in others)} rows change as in the paper."
    )


def _counted_out(counts: Mapping[str, int]) -> str:
    n_rows = counts.get(NOT_LEARNED, 0)
    return f"; {n_rows} {'has' if n_rows == 1 else 'have'} not learned to translate" if n_rows else ""


def _not_learned(rows: Rows) -> list[str]:
    """Return a paragraph on the rows that have not learned to translate, if there are some."""
    names = [name for name in rows if not has_learned(name, rows)]
    bleu = ", ".join(f"{name} ({mean_of(bleu_of, rows[name]):.1f} BLEU)" for name in names)
    return [
        f"Not learned: {bleu}. With less than {100 * LEARNED:g} % of base's BLEU a model tells how it was trained, and"
        " nothing of what the row changes; it decides nothing."
    ] if names else []  # fmt: skip


def _length(experiments: Experiments, rows: Rows) -> tuple[Rows | None, list[str]]:
    """Return the rows as after twice the updates, and say which effects another length would turn.

    At scale hours, whose runs were validated often.
    """
    if experiments.scale != "hours":
        return None, []
    runs_of = {run.name: run for name in rows for run in runs_of_row(experiments, name)}
    curves = {name: [experiments.kept_curve(runs_of[run.name]) for run in of_row] for name, of_row in rows.items()}
    before, later = half_way(rows, curves), twice_as_long(rows, curves)
    others = [name for name in before if name != "base"] if "base" in before else []
    effects = {name: effect_on_perplexity(name, rows) for name in others}
    turned = [name for name in others if effect_on_perplexity(name, before) != effects[name]]
    to_turn = [name for name in others if effect_on_perplexity(name, later) != effects[name]]
    return later, [
        f"Would more training turn an effect? After half of the updates, that on perplexity was the same in"
        f" {len(others) - len(turned)} of {len(others)} rows{_listed(turned)}. If twice the updates gained once more"
        f" what the second half of them has gained, it would be the same in {len(others) - len(to_turn)}"
        f"{_listed(to_turn)}. A comparison of models that still learn decides only if this would not turn it."
    ]


def _listed(names: Sequence[str]) -> str:
    return f" (not in {', '.join(names)})" if names else ""


def _on_less_text(experiments: Experiments, rows: Rows) -> list[str | Table]:
    """Return the section on dropout and the amount of text, of runs that were trained to the end only."""
    if experiments.scale != "hours":
        return []
    return ["## Dropout by the amount of text", dropout_table(dropout_by_pairs(experiments), rows)]


def _sizes(rows: Rows) -> str:
    """Describe the paper's and our model and text of each row; rows of the same sizes together."""
    names_of = defaultdict[str, list[str]](list)
    for name, runs in rows.items():
        paper, ours = size_description(row_at_scale(name, "paper")), size_description(runs[0].config)
        names_of[f"paper {paper}; ours {ours}."].append(name)
    return " ".join(
        (
            *(
                f"{'Row' if len(names) == 1 else 'Rows'} {', '.join(names)}: {sizes}"
                for sizes, names in names_of.items()
            ),
            "Every row changes the model as the paper does, in the same ratio. Numbers of the two sizes cannot be",
            "compared with each other, only their differences from base.",
        )
    )


def _draw(rows: Rows, path: Path) -> None:
    base, first = mean_of(perplexity_of, rows["base"]), rows["base"][0]
    margin = max(margins(rows, perplexity_of))
    points = [
        RowPoint(
            name=name,
            change=ROWS[name].change if name != "big" else "d_model 1024, h 16, P_drop 0.3",
            group=name.partition("-")[0],
            perplexity=mean_of(perplexity_of, runs),
            paper_perplexity=ROWS[name].perplexity,
            effect=effect_on_perplexity(name, rows),
        )
        for name, runs in rows.items()
        if name != "base"
    ]
    draw_perplexities(
        points,
        base=(base, base - margin, base + margin),
        paper_base=ROWS["base"].perplexity,
        titles=(
            f"Ours: base {size_description(first.config)}",
            f"Paper: base {size_description(row_at_scale('base', 'paper'))}",
        ),
        labels=(
            f"perplexity, {first.dev_text}; line: base, {base:.2f}",
            f"perplexity, newstest2013; line: base, {ROWS['base'].perplexity:.2f}",
        ),
        path=path,
    )


def _details(scale: Scale, rows: Rows) -> str:
    """Describe the runs: model, training, scores."""
    first, runs = rows["base"][0], list(chain(*rows.values()))
    model, training, data, search = (first.config[table] for table in ("model", "training", "data", "search"))
    corpora = data["corpus"] if isinstance(data["corpus"], str) else ", ".join(data["corpus"])
    return "\n".join(
        (
            "## Details\n",
            f"- Model, scale {scale}: {model['n_encoder_layers']} + {model['n_decoder_layers']} layers, d_model"
            f" {model['d_model']}, d_ff {model['d_ff']}, d_k {model['d_k']}, {first.parameters / 1e6:.2f} million"
            f" parameters, on {corpora} ({data['direction']}, vocabulary {model['tgt_vocab_size']:,}).",
            f"- Training: {first.updates:,} updates, {training['warmup_steps']:,} of them warm-up"
            f"{learning_rate_description(training)}; {about_rates(scale)}; {first.tgt_tokens:,} target tokens,"
            f" {precisions(runs)}, {mean_of(minutes_of, rows['base']):.1f} minutes{_beside(runs)}. No checkpoint is"
            " averaged (section 6.2).",
            f"- PPL and BLEU are of {first.dev_text}, the paper's of newstest2013. PPL is per token, without label"
            " smoothing.",
            f"- BLEU: `{first.dev_scores['sacrebleu']['signature']}`. Tokenised BLEU with compounds split, like the"
            f" paper's: `{first.dev_scores['paper_bleu']['signature']}`. Beam {search['beam_size']}, alpha"
            f" {search['alpha']}.",
            f"- Seeds: {_seeds(rows)}; the numbers of rows with several are their means. Minutes are those of a run"
            " from start to end.",
        )
    )


def _beside(runs: Sequence[RunRecord]) -> str:
    fewest, most = (end(run.runs_at_once - 1 for run in runs) for end in (min, max))
    others = f"{'' if fewest == most else 'up to '}{most} other run{'' if most == 1 else 's'}"
    return f", beside {others}, so minutes say little about speed" if most else ""
