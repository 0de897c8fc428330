"""Table 2: BLEU and training cost of the Transformer and of baselines modelled on its predecessors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import sqrt
from statistics import mean

from transduce_paper.experiments import Experiments
from transduce_paper.printed import PRINTED, PrintedSystem
from transduce_paper.report import Cell, Claim, Report, Table, agreement, how_to_reproduce, picture
from transduce_paper.request import Request
from transduce_paper.run_records import CONVERGED, are_trained_to_the_end, machines, precisions
from transduce_paper.sizes import size_description
from transduce_paper.table2.comparisons import about_amounts, amounts_table, longer_tables, settings_table
from transduce_paper.table2.drawing import draw_amounts, draw_courses, draw_flops
from transduce_paper.table2.papers_table import capacities_table, claims_of_the_paper, printed_table
from transduce_paper.table2.systems import SYSTEMS
from transduce_paper.table2.text import about_text, n_training_pairs, size_of
from transduce_paper.table2.training import (
    N_SEEDS_OF_THE_BEST,
    TRANSFORMER,
    Trained,
    is_recorded,
    lead_over,
    margin_of,
    missing_runs,
    recorded,
    train_systems,
    tries_of,
    would_last,
)
from transduce_paper.table3.rows import learning_rate_description, row_at_scale

__all__ = ["is_recorded", "make_table2", "recorded"]


def make_table2(experiments: Experiments, request: Request) -> Report:
    """Train every system on the same text with the same tokenizer, search and number of updates."""
    systems = train_systems(experiments, request)
    transformer = systems[TRANSFORMER].records[0]
    drawings = {
        "table2": lambda path: draw_flops(systems, path),
        "table2-curves": lambda path: draw_courses(systems, path),
    }
    is_at_hours = experiments.scale == "hours"
    by_settings = [settings_table(tries_of(experiments, systems))] if is_at_hours else []
    by_amount = list[str | Table]()
    if systems[TRANSFORMER].on_fewer:
        n_all = n_training_pairs(experiments)
        by_amount = [
            "## The amount of text\n\n" + about_amounts(systems, n_all),
            amounts_table(systems, n_all),
            picture("table2-amounts", "BLEU of each system by the number of training pairs"),
        ]
        drawings["table2-amounts"] = lambda path: draw_amounts(systems, n_all, path)
    return Report(
        "Table 2: BLEU and the cost of training",
        (
            f"Transformer of the paper (base): {size_description(row_at_scale('base', 'paper'))}. Ours:"
            f" {size_of(transformer)}. Numbers of different sizes cannot be compared with each other,"
            " only the order of the systems.",
            _measured(systems),
            *_missing(experiments),
            picture("table2", "BLEU over training FLOPs: our systems above, the paper's below"),
            picture("table2-curves", "BLEU of our systems at each validation, over training FLOPs and over minutes"),
            how_to_reproduce(
                "table2 --recorded" if request.only_recorded else "table2",
                scale=experiments.scale,
                seeds=_seeds(systems),
                hardware=machines(record for each in systems.values() for record in each.records),
            ),
            _about_seeds(systems),
            _about_training(systems),
            _details(experiments, systems),
            *by_settings,
            *by_amount,
            *longer_tables(systems),
            _curves(systems),
            "## The paper's numbers\n\nBLEU on newstest2014; ensembles as printed. The text of section 6.1 has"
            f" {PRINTED.text_bleu_fr} BLEU for the big model's English to French, the table"
            f" {PRINTED.table2['Transformer (big)'].bleu_fr}. For the paper's own models, the last two columns are"
            " FLOPs by its rule (training time x number of GPUs x sustained FLOP/s) and by counting matrix products.",
            printed_table(),
            capacities_table(),
        ),
        drawings=drawings,
        claims=(*_claims(systems), *claims_of_the_paper()),
        finding=_verdict(systems),
        name="table2",
    )


def _missing(experiments: Experiments) -> list[str]:
    """Return a paragraph on the runs that have no record yet, if there are some."""
    names = missing_runs(experiments)
    return [f"Not recorded yet, so left out: {', '.join(names)}."] if names else []


def _verdict(systems: Mapping[str, Trained]) -> str:
    """Summarise the order of the systems; the paper has the Transformer first."""
    in_order = sorted((TRANSFORMER, *_previous(systems)), key=lambda name: -systems[name].bleu)
    ours, rank = systems[TRANSFORMER].bleu, in_order.index(TRANSFORMER) + 1
    other = in_order[1] if rank == 1 else in_order[0]
    lead = lead_over(other, systems, _bleus)
    n_updates = systems[TRANSFORMER].records[0].updates
    worse = other if lead.difference > 0 else TRANSFORMER
    how_sure = (
        "one seed each"
        if lead.half_width == 0
        else f"within the {lead.half_width:.1f} that seeds explain"
        if lead.is_above_zero is None
        else f"more than the {lead.half_width:.1f} that seeds explain"
    )
    place = f"The Transformer is number {rank} of {len(in_order)} (in the paper the first)"
    longer = _after_longer(other, systems)
    end = "" if would_last(other, systems) else f" {worse} is not trained to the end, so this decides nothing."
    return (
        f"{place}: {ours:.1f} BLEU after {n_updates:,} updates, {other} {systems[other].bleu:.1f} (difference"
        f" {lead.difference:+.1f}, {how_sure}), on the same text and with about the same FLOPs per token.{longer}{end}"
    )


def _after_longer(other: str, systems: Mapping[str, Trained]) -> str:
    """Say what the longer runs of the Transformer and another system have, if there are both."""
    ours, theirs = systems[TRANSFORMER].longer, systems[other].longer
    if ours is None or theirs is None:
        return ""
    return f" After {ours.updates:,} updates (seed 1) they have {ours.bleu:.1f} and {theirs.bleu:.1f}."


def _previous(systems: Mapping[str, Trained]) -> list[str]:
    """Name the systems that the Transformer is compared with: of its size, for the same languages."""
    ours = SYSTEMS[TRANSFORMER]
    return [
        name
        for name in systems
        if name != TRANSFORMER and not SYSTEMS[name].is_big and SYSTEMS[name].direction == ours.direction
    ]


def _bleus(system: Trained) -> list[float]:
    """Return the BLEU of each seed."""
    return [record.bleu for record in system.records]


def _claims(systems: Mapping[str, Trained]) -> tuple[Claim, ...]:
    """Return the caption of Table 2 and section 7's sentence on training time, tested on our systems."""
    best = max(_previous(systems), key=lambda name: systems[name].bleu)
    lead = lead_over(best, systems, _bleus)
    is_so = lead.is_above_zero if lead.half_width else None
    interval = f", 95 % interval ± {lead.half_width:.1f} over seeds" if lead.half_width else ""
    others = [name for name in systems if "system" in SYSTEMS[name].changes]
    slower = {name: lead_over(name, systems, lambda each: each.minutes_by_seed) for name in others}
    is_faster = [(-each).is_above_zero if each.half_width else None for each in slower.values()]
    uncertainty = max(each.half_width for each in slower.values())
    spread = (
        f"By the spread of the seeds, some of which ran beside another run, such a difference is uncertain by up to"
        f" {uncertainty:.1f} minutes."
        if uncertainty
        else "One seed each, so its uncertainty is not known."
    )
    return (
        Claim(
            "The Transformer achieves better BLEU scores than previous state-of-the-art models",
            "Table 2, caption",
            agreement(is_so, is_trained=would_last(best, systems)),
            f"At {size_of(systems[TRANSFORMER].records[0])} and about equal FLOPs per token it has"
            f" {systems[TRANSFORMER].bleu:.1f} BLEU, {best} {systems[best].bleu:.1f} (difference"
            f" {lead.difference:+.1f}{interval}). These baselines are modelled on its predecessors, at our size."
            + _after_longer(best, systems),
        ),
        Claim(
            "the Transformer can be trained significantly faster than architectures based on recurrent or convolutional"
            " layers",
            "section 7",
            agreement(False if False in is_faster else None if None in is_faster else True),
            f"The same number of updates takes {systems[TRANSFORMER].minutes:.1f} minutes, "
            + ", ".join(f"{name} {systems[name].minutes:.1f}" for name in others)
            + " (all updates at the median pace between validations, means of the seeds;"
            f" {systems[TRANSFORMER].records[0].machine}). {spread}",
        ),
    )


def _seeds(systems: Mapping[str, Trained]) -> str:
    several = defaultdict[str, list[str]](list)
    for name, each in systems.items():
        if len(each.records) > 1:
            several[_listed(str(record.config["training"]["seed"]) for record in each.records)].append(name)
    more = "".join(f", seeds {seeds} for {_listed(names)}" for seeds, names in several.items())
    return f"seed 1 for each system{more}"


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _about_seeds(systems: Mapping[str, Trained]) -> str:
    margin = margin_of(systems)
    if margin is None:
        return "One seed each, so small differences mean nothing."
    scores = "; ".join(
        f"{name} {', '.join(f'{record.bleu:.1f}' for record in each.records)}"
        for name, each in systems.items()
        if len(each.records) > 1
    )
    return (
        f"BLEU by seed: {scores}. Means of {N_SEEDS_OF_THE_BEST} seeds differ by chance by up to"
        f" {margin / sqrt(N_SEEDS_OF_THE_BEST):.1f} BLEU (95 % interval, Student's t, variance pooled), two single runs"
        f" by up to {margin:.1f}."
    )


def _about_training(systems: Mapping[str, Trained]) -> str:
    """Say which systems are trained to the end."""
    learning = {
        name: [record.last_fall for record in each.records if record.last_fall is not None]
        for name, each in systems.items()
        if not are_trained_to_the_end(each.records)
    }
    falls = ", ".join(f"{name} {100 * mean(of_seeds):.1f} %" for name, of_seeds in learning.items() if of_seeds)
    return (
        f"Trained to the end, so that dev perplexity (the mean of the seeds) falls by less than {100 * CONVERGED:g} %"
        " from the last validation before the last tenth of the updates to the end:"
        f" {len(systems) - len(learning)} of {len(systems)}." + (f" It still fell in {falls}." if falls else "")
    )


def _details(experiments: Experiments, systems: Mapping[str, Trained]) -> str:
    record = systems[TRANSFORMER].records[0]
    training, data, search = (record.config[table] for table in ("training", "data", "search"))
    corpora = data["corpus"] if isinstance(data["corpus"], str) else ", ".join(data["corpus"])
    text, scores = record.test_text or record.dev_text, record.test_scores or record.dev_scores
    runs = [each for system in systems.values() for each in system.records]
    has_own_settings = experiments.scale == "hours"
    rates = training if not has_own_settings else {**training, "lr_factor": 1}
    return "\n".join(
        (
            "## Details\n",
            "- Systems: baselines modelled on the paper's, not those systems themselves. The number of layers of"
            " each is chosen for about the Transformer's FLOPs; of 8 experts, each half as wide, two are active.",
            f"- Training: the same text ({about_text(experiments) if has_own_settings else corpora},"
            f" {data['direction']}), tokenizer, search and {record.updates:,} updates ({training['warmup_steps']:,} of"
            f" warm-up{learning_rate_description(rates)}), {precisions(runs)}."
            + (
                " Each system has the best of the settings below."
                if has_own_settings
                else " All are trained like the Transformer (section 5.3), which may not be the best for the others."
            ),
            f"- BLEU on {text}: `{scores['sacrebleu']['signature']}`. Tokenised BLEU with compounds split, like the"
            f" paper's: `{scores['paper_bleu']['signature']}`. Beam {search['beam_size']}, alpha {search['alpha']}.",
            "- FLOPs by count: 6 per weight and target token. FLOPs by rule (the paper's): training time"
            " x sustained FLOP/s, measured with large matrix products before each training. Minutes are those of all"
            " updates at the median pace between two validations, so that a stall of the machine does not count. Both"
            " are means of the seeds.",
            f"- Curves: BLEU of the first {training['validation_sentences']:,} sentences of {record.dev_text} at each"
            " validation, without averaging of checkpoints.",
        )
    )


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
                mean(one.dev_perplexity for one in each.records), record.training_flops, each.flops_by_rule,
                record.sustained_flops / 1e12, each.minutes, theirs.bleu_fr if is_french else theirs.bleu_de,
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


def _curves(systems: Mapping[str, Trained]) -> Table:
    rows = tuple(
        (name, point.update, flops, point.minutes, point.perplexity, point.bleu)
        for name, each in systems.items()
        for point, flops in zip(each.curve, each.flops_so_far, strict=True)
    )
    columns = ("system", "update", "FLOPs by count", "minutes", "dev PPL", "dev BLEU")
    formats = {"update": ",", "FLOPs by count": ".1e", "minutes": ".1f", "dev PPL": ".2f", "dev BLEU": ".1f"}
    return Table("-curves", columns, rows, "Validations during training, seed 1.", formats)
