"""Table 2: BLEU and training cost of the Transformer and of baselines modelled on its predecessors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean

from transduce_paper.drawing import COLOURS, new_panels, save_svg, set_log_axis
from transduce_paper.experiments import Experiments
from transduce_paper.intervals import half_width_of_mean
from transduce_paper.printed import PRINTED, PrintedSystem
from transduce_paper.report import Cell, Claim, Report, Table, agreement, how_to_reproduce, picture
from transduce_paper.request import Request
from transduce_paper.run_records import CONVERGED, RunRecord, machines
from transduce_paper.sizes import size_description
from transduce_paper.table2.papers_table import capacities_table, claims_of_the_paper, printed_table
from transduce_paper.table2.systems import SYSTEMS, system_experiment, systems_at_scale
from transduce_paper.table3_rows import learning_rate_description, row_at_scale
from transduce_paper.table_plots import FlopsPoint, draw_bleu_over_flops
from transduce_paper.training_curves import ValidationPoint

__all__ = ["make_table2"]

TRANSFORMER = "Transformer"
N_SEEDS_OF_THE_BEST = 3  # at cpu scale: of the Transformer, and of the other system that leads with seed 1


@dataclass(frozen=True, slots=True)
class Trained:
    """The runs of one system, by seed, and the validations of the first."""

    records: Sequence[RunRecord]
    curve: Sequence[ValidationPoint]

    @property
    def bleu(self) -> float:
        """Mean BLEU over the seeds."""
        return mean(record.bleu for record in self.records)


def make_table2(experiments: Experiments, request: Request) -> Report:
    """Train every system on the same text with the same tokenizer, search and number of updates."""
    systems = _trained(experiments)
    transformer = systems[TRANSFORMER].records[0]
    return Report(
        "Table 2: BLEU and the cost of training",
        (
            f"Transformer of the paper (base): {size_description(row_at_scale('base', 'paper'))}. Ours:"
            f" {size_description(transformer.config)}. Numbers of different sizes cannot be compared with each other,"
            " only the order of the systems.",
            _measured(systems),
            picture("table2", "BLEU over training FLOPs: our systems above, the paper's below"),
            picture("table2-curves", "BLEU of our systems over training FLOPs, at each validation of their training"),
            how_to_reproduce(
                "table2",
                scale=experiments.scale,
                seeds=_seeds(systems),
                hardware=machines(record for each in systems.values() for record in each.records),
            ),
            _about_seeds(systems),
            _about_training(systems),
            _details(transformer),
            _curves(systems),
            "## The paper's numbers\n\nBLEU on newstest2014; ensembles as printed. The text of section 6.1 has"
            f" {PRINTED.text_bleu_fr} BLEU for the big model's English to French, the table"
            f" {PRINTED.table2['Transformer (big)'].bleu_fr}. For the paper's own models, the last two columns are"
            " FLOPs by its rule (training time x number of GPUs x sustained FLOP/s) and by counting matrix products.",
            printed_table(),
            capacities_table(),
        ),
        drawings={
            "table2": lambda path: _draw(systems, path),
            "table2-curves": lambda path: _draw_curves(systems, path),
        },
        claims=(*_claims(systems), *claims_of_the_paper()),
        finding=_verdict(systems),
        name="table2",
    )


def _trained(experiments: Experiments) -> dict[str, Trained]:
    """Train every system with seed 1; at cpu scale the Transformer and the best of the others with more seeds."""
    names = systems_at_scale(experiments.scale)
    first = {name: experiments.run(system_experiment(experiments, name)) for name in names}
    leading = (TRANSFORMER, max((name for name in names if name != TRANSFORMER), key=lambda name: first[name].bleu))
    more = range(2, N_SEEDS_OF_THE_BEST + 1) if experiments.scale == "cpu" else ()
    return {
        name: Trained(
            [
                record,
                *(experiments.run(system_experiment(experiments, name, seed=n)) for n in more if name in leading),
            ],
            experiments.curve(system_experiment(experiments, name)),
        )
        for name, record in first.items()
    }


def _margin(systems: Mapping[str, Trained]) -> float | None:
    """Return the half width of the 95 % interval of the difference of two means over seeds; None with one seed each.

    Student's t with the variance pooled over the systems that have several seeds.
    """
    several = [[record.bleu for record in each.records] for each in systems.values() if len(each.records) > 1]
    if not several:
        return None
    return half_width_of_mean(len(several[0]), several) * sqrt(2)


def _verdict(systems: Mapping[str, Trained]) -> str:
    """Summarise the order of the systems; the paper has the Transformer first."""
    in_order = sorted(systems, key=lambda name: -systems[name].bleu)
    ours, rank = systems[TRANSFORMER].bleu, in_order.index(TRANSFORMER) + 1
    other = in_order[1] if rank == 1 else in_order[0]
    difference, margin = ours - systems[other].bleu, _margin(systems)
    n_updates = systems[TRANSFORMER].records[0].updates
    is_sure = margin is not None and abs(difference) > margin
    how_sure = (
        f"more than the {margin:.1f} that seeds explain"
        if margin is not None and is_sure
        else "one seed each"
        if margin is None
        else f"within the {margin:.1f} that seeds explain"
    )
    place = (
        "The Transformer comes first, as in the paper"
        if rank == 1
        else (
            f"The paper's order, Transformer first, does not hold at this size: it is number {rank} of {len(in_order)}"
        )
    )
    return (
        f"{place}: {ours:.1f} BLEU after {n_updates:,} updates, {other} {systems[other].bleu:.1f} (difference"
        f" {difference:+.1f}, {how_sure}), on the same text and with about the same FLOPs per token."
    )


def _claims(systems: Mapping[str, Trained]) -> tuple[Claim, ...]:
    """Return the caption of Table 2 and section 7's sentence on training time, tested on our systems."""
    best = max((name for name in systems if name != TRANSFORMER), key=lambda name: systems[name].bleu)
    difference, margin = systems[TRANSFORMER].bleu - systems[best].bleu, _margin(systems)
    is_so = None if margin is None or abs(difference) <= margin else difference > 0
    is_trained = all(systems[name].records[0].is_trained_to_the_end for name in (TRANSFORMER, best))
    interval = "" if margin is None else f", 95 % interval ± {margin:.1f} over seeds"
    ours = _minutes(systems[TRANSFORMER])
    others = {name: _minutes(each) for name, each in systems.items() if "system" in SYSTEMS[name].changes}
    return (
        Claim(
            "The Transformer achieves better BLEU scores than previous state-of-the-art models",
            "Table 2, caption",
            agreement(is_so, is_trained=is_trained),
            f"At {size_description(systems[TRANSFORMER].records[0].config)} and equal FLOPs per token it has"
            f" {systems[TRANSFORMER].bleu:.1f} BLEU, {best} {systems[best].bleu:.1f} (difference"
            f" {difference:+.1f}{interval}). These baselines are modelled on its predecessors, at our size.",
        ),
        Claim(
            "the Transformer can be trained significantly faster than architectures based on recurrent or convolutional"
            " layers",
            "section 7",
            agreement(all(ours < minutes for minutes in others.values())),
            f"The same number of updates takes {ours:.1f} minutes, "
            + ", ".join(f"{name} {minutes:.1f}" for name, minutes in others.items())
            + f" ({systems[TRANSFORMER].records[0].machine}, one run at a time or two).",
        ),
    )


def _seeds(systems: Mapping[str, Trained]) -> str:
    more = [name for name, each in systems.items() if len(each.records) > 1]
    if not more:
        return "seed 1 for each system"
    return f"seed 1 for each system, seeds 1 to {N_SEEDS_OF_THE_BEST} for {' and '.join(more)}"


def _about_seeds(systems: Mapping[str, Trained]) -> str:
    margin = _margin(systems)
    if margin is None:
        return "One seed each, so small differences mean nothing."
    scores = "; ".join(
        f"{name} {', '.join(f'{record.bleu:.1f}' for record in each.records)}"
        for name, each in systems.items()
        if len(each.records) > 1
    )
    of_single_runs = margin * sqrt(N_SEEDS_OF_THE_BEST)
    return (
        f"BLEU by seed: {scores}. Means of {N_SEEDS_OF_THE_BEST} seeds differ by chance by up to {margin:.1f} BLEU"
        f" (95 % interval, Student's t, variance pooled), two single runs by up to {of_single_runs:.1f}."
    )


def _about_training(systems: Mapping[str, Trained]) -> str:
    """Say which systems are trained to the end."""
    first = {name: each.records[0] for name, each in systems.items()}
    learning = {name: record.last_fall for name, record in first.items() if not record.is_trained_to_the_end}
    falls = ", ".join(f"{name} {100 * fall:.1f} %" for name, fall in learning.items() if fall is not None)
    return (
        f"Trained to the end, so that dev perplexity falls by less than {100 * CONVERGED:g} % from the last validation"
        f" before the last tenth of the updates to the end: {len(systems) - len(learning)} of {len(systems)}."
        + (f" It still fell in {falls}." if falls else "")
    )


def _details(record: RunRecord) -> str:
    training, data, search = (record.config[table] for table in ("training", "data", "search"))
    corpora = data["corpus"] if isinstance(data["corpus"], str) else ", ".join(data["corpus"])
    text, scores = record.test_text or record.dev_text, record.test_scores or record.dev_scores
    return "\n".join(
        (
            "## Details\n",
            "- Systems: baselines modelled on the paper's, not those systems themselves. The number of layers of"
            " each is chosen for about the Transformer's FLOPs; of 8 experts, each half as wide, two are active.",
            f"- Training: the same text ({corpora}, {data['direction']}), tokenizer, search and {record.updates:,}"
            f" updates ({training['warmup_steps']:,} of warm-up{learning_rate_description(training)}),"
            f" {training['precision']}. All are trained like the Transformer (section 5.3), which may not be the best"
            " for the others.",
            f"- BLEU on {text}: `{scores['sacrebleu']['signature']}`. Tokenised BLEU with compounds split, like the"
            f" paper's: `{scores['paper_bleu']['signature']}`. Beam {search['beam_size']}, alpha {search['alpha']}.",
            "- FLOPs by count: 6 per weight and target token. FLOPs by rule (the paper's): training time without"
            " validations x sustained FLOP/s, measured with large matrix products before each training.",
            f"- Curves: BLEU of the first {training['validation_sentences']:,} sentences of {record.dev_text} at each"
            " validation, without averaging of checkpoints.",
        )
    )


def _flops_by_rule(each: Trained) -> float:
    """Return the training FLOPs by the paper's rule: time times the sustained FLOP/s of the machine."""
    return 60 * _minutes(each) * each.records[0].sustained_flops


def _minutes(each: Trained) -> float:
    """Return the minutes of training of seed 1, without its validations."""
    return each.curve[-1].minutes if each.curve else each.records[0].minutes


def _measured(systems: Mapping[str, Trained]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, each in systems.items():
        record, theirs = each.records[0], PRINTED.table2.get(SYSTEMS[name].row, PrintedSystem())
        layers = f"{record.config['model']['n_encoder_layers']} + {record.config['model']['n_decoder_layers']}"
        tokenised = mean(float((one.test_scores or one.dev_scores)["paper_bleu"]["score"]) for one in each.records)
        is_french = SYSTEMS[name].direction == "en-fr"
        rows.append(
            (
                name, layers, record.parameters / 1e6, each.bleu, len(each.records), tokenised,
                mean(one.dev_perplexity for one in each.records), record.training_flops, _flops_by_rule(each),
                record.sustained_flops / 1e12, _minutes(each), theirs.bleu_fr if is_french else theirs.bleu_de,
                theirs.flops_fr if is_french else theirs.flops_de,
            )
        )  # fmt: skip
    columns = (
        "system", "layers", "million parameters", "BLEU", "seeds", "tokenised BLEU", "dev PPL", "FLOPs by count",
        "FLOPs by rule", "TFLOPS sustained", "minutes", "paper: BLEU", "paper: FLOPs",
    )  # fmt: skip
    formats = dict.fromkeys(("million parameters", "BLEU", "tokenised BLEU", "dev PPL", "TFLOPS sustained"), ".2f")
    flops = ("FLOPs by count", "FLOPs by rule", "paper: FLOPs")
    return Table("", columns, tuple(rows), formats=formats | {"minutes": ".1f"} | dict.fromkeys(flops, ".1e"))


def _flops_so_far(each: Trained) -> list[float]:
    """Return the FLOPs by count at each validation."""
    record = each.records[0]
    return [record.training_flops * point.tgt_tokens / record.tgt_tokens for point in each.curve]


def _curves(systems: Mapping[str, Trained]) -> Table:
    rows = tuple(
        (name, point.update, flops, point.minutes, point.perplexity, point.bleu)
        for name, each in systems.items()
        for point, flops in zip(each.curve, _flops_so_far(each), strict=True)
    )
    columns = ("system", "update", "FLOPs by count", "minutes", "dev PPL", "dev BLEU")
    formats = {"update": ",", "FLOPs by count": ".1e", "minutes": ".1f", "dev PPL": ".2f", "dev BLEU": ".1f"}
    return Table("-curves", columns, rows, "Validations during training, seed 1.", formats)


def _draw_curves(systems: Mapping[str, Trained], path: Path) -> None:
    figure, (panel,) = new_panels(9.5, 4.6)
    for (name, each), colour in zip(systems.items(), COLOURS, strict=False):
        points = [
            (flops, point.bleu)
            for point, flops in zip(each.curve, _flops_so_far(each), strict=True)
            if point.bleu is not None
        ]
        width = 2.4 if name.startswith(TRANSFORMER) else 1.4
        panel.plot(*zip(*points, strict=True), "o-", color=colour, linewidth=width, markersize=4, label=name)
    set_log_axis(panel, "x")
    panel.set_xscale("log")
    panel.set(xlabel="training FLOPs so far, by count", ylabel="BLEU on dev")
    panel.set_title("BLEU of checkpoints", loc="left")
    panel.legend(frameon=False, fontsize=9)
    save_svg(figure, path)


def _draw(systems: Mapping[str, Trained], path: Path) -> None:
    record = systems[TRANSFORMER].records[0]
    ours = [
        FlopsPoint(name, _flops_by_rule(each), each.bleu, name.startswith(TRANSFORMER))
        for name, each in systems.items()
        if SYSTEMS[name].direction == "en-de"
    ]
    printed = [
        FlopsPoint(name, row.flops_de, row.bleu_de, name.startswith(TRANSFORMER))
        for name, row in PRINTED.table2.items()
        if row.flops_de is not None and row.bleu_de is not None
    ]
    flops = "training FLOPs (time x sustained FLOP/s)"
    size = size_description(row_at_scale("base", "paper"))
    draw_bleu_over_flops(
        (
            (f"Ours: {size_description(record.config)}", flops, f"BLEU, {record.test_text or record.dev_text}", ours),
            (f"Paper: base {size}", flops, "BLEU, newstest2014 en-de", printed),
        ),
        path,
    )
