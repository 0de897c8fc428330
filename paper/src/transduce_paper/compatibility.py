"""Compatibility functions: sections 3.2.1 and 6.2 (B), on small translation models, and their time and memory.

Shapes: B sentences, H heads, T query positions, S key positions, K d_k.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, expm1, log, log1p
from operator import attrgetter
from pathlib import Path
from statistics import mean, median
from typing import Any, Literal, get_args

import torch
from torch.autograd.graph import saved_tensors_hooks

from transduce.model import StackConfig, dot_product_attention, make_compatibility, weighted_values
from transduce.recipes import with_settings
from transduce_paper.drawing import COLOURS, new_panels, save_svg, set_log_axis
from transduce_paper.experiments import Experiments
from transduce_paper.intervals import NEARLY_IDENTICAL, Interval, half_width_of_mean, interval_of_difference
from transduce_paper.machine import machine_description
from transduce_paper.report import Cell, Claim, Report, Table, agreement, how_to_reproduce, picture
from transduce_paper.request import Request
from transduce_paper.run_records import Experiment, RunRecord, about_runs, are_trained_to_the_end, machines
from transduce_paper.sizes import size_description
from transduce_paper.table3.rows import row_at_scale

__all__ = [
    "Cost", "Function", "compatibility_experiment", "cost_of_function", "make_compatibility_report",
    "megabytes_of_pairs",
]  # fmt: skip

Function = Literal["scaled", "dot", "additive", "bilinear"]
FUNCTIONS: tuple[Function, ...] = get_args(Function)
FORMULAS: Mapping[Function, str] = {
    "scaled": "q · k / √d_k",
    "dot": "q · k",
    "additive": "v · tanh(q + k)",
    "bilinear": "q · A k / √d_k",
}
SOPHISTICATED: tuple[Function, ...] = ("additive", "bilinear")
D_KS, SEEDS = (8, 32, 128, 256), (1, 2)
SMALL, LARGE = D_KS[0], D_KS[-1]
SETTINGS = (
    "model.n_encoder_layers=2", "model.n_decoder_layers=2", "model.n_heads=2", "model.d_v=32",
    "training.max_updates=1000", "training.validate_every_updates=1000", "training.max_tokens_per_batch=2000",
)  # fmt: skip

# Of the cost of one function: sentences, heads, positions; d_k varies.
N_SENTENCES, N_HEADS, LENGTHS = 8, 2, (32, 128)
N_REPETITIONS = 7
PERPLEXITIES = (3, 4, 5, 7, 10, 15, 20, 30, 40, 60, 100)  # ticks

INTRODUCTION = """\
The score of a query and a key decides how much attention the key gets. The paper divides their dot product by the
square root of d_k (*scaled*), and compares it in words with the dot product alone (*dot*) and with additive attention,
a network with one hidden layer (*additive*). Section 6.2 (B) suggests that "a more sophisticated compatibility function
than dot product may be beneficial": besides the additive one we test a bilinear form with a matrix A for each head.

Translation models that differ only in function and d_k are trained from the seeds {seeds} ({size}; {n_heads} heads,
d_v 32, {n_updates:,} updates, {parameters}). The intervals are 95 %, by Student's t with the standard deviation pooled
over all pairs of seeds ({freedom} degrees of freedom); those of perplexity are of its logarithm. {about_runs}"""

ABOUT_COST = """\
## Time and memory

Forward and backward pass of one attention layer without its projections, {n_sentences} sentences, {n_heads} heads,
fp32, {hardware}; medians of {n_repetitions} interleaved repetitions. *Kept* is the memory of the tensors that the
forward pass keeps for the backward pass, measured by torch's hooks on them; *pairs* is the part that grows with the
number of pairs of positions, by count: the weights, and for additive attention also its hidden layer. All functions
use the reference implementation; the paper's has faster kernels besides, so its advantage in practice is larger."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Time and memory of one function at one size."""

    milliseconds: float
    kept_mb: float


def make_compatibility_report(experiments: Experiments, request: Request) -> Report:
    """Train a model for each function, d_k and seed, or read their records; measure time and memory."""
    functions, d_ks = experiments.pick(FUNCTIONS, test=FUNCTIONS[:2]), experiments.pick(D_KS, test=D_KS[:1])
    records = {
        (function, d_k): [experiments.run(compatibility_experiment(experiments, function, d_k, seed)) for seed in SEEDS]
        for function, d_k in product(functions, d_ks)
    }
    costs, hardware = measured_costs(experiments, functions, d_ks, experiments.pick(LENGTHS, test=LENGTHS[:1]))
    all_records = [record for of_cell in records.values() for record in of_cell]
    return Report(
        "Compatibility functions of attention",
        (
            INTRODUCTION.format(
                seeds=" and ".join(map(str, SEEDS)),
                size=size_description(all_records[0].config),
                n_heads=all_records[0].config["model"]["n_heads"],
                n_updates=all_records[0].updates,
                parameters=_parameters(all_records),
                freedom=len(records) * (len(SEEDS) - 1),
                about_runs=about_runs(all_records),
            ),
            _table(records),
            picture("compatibility", "Perplexity and BLEU of four compatibility functions over d_k"),
            how_to_reproduce(
                "compatibility",
                scale=experiments.scale,
                seeds=f"seeds {' and '.join(map(str, SEEDS))}",
                hardware=machines(all_records),
            ),
            _table_of_differences(records),
            ABOUT_COST.format(
                n_sentences=N_SENTENCES,
                n_heads=N_HEADS,
                hardware=hardware,
                n_repetitions=N_REPETITIONS,
            ),
            _table_of_costs(costs),
        ),
        drawings={"compatibility": lambda path: _draw(records, path)},
        claims=() if experiments.scale == "test" else _claims(records, costs),
        finding=_verdict(records),
        name="compatibility",
    )


Records = Mapping[tuple[Function, int], Sequence[RunRecord]]
Costs = Mapping[tuple[Function, int, int], Cost]  # by function, d_k and length


def compatibility_experiment(experiments: Experiments, function: Function, d_k: int, seed: int) -> Experiment:
    """Return the run of a function with a d_k and a seed."""
    settings = [] if experiments.scale in ("gpu", "paper") else [*SETTINGS]
    config = with_settings(
        row_at_scale("base", experiments.scale, seed=seed),
        [*settings, f"model.compatibility={function}", f"model.d_k={d_k}"],
    )
    return experiments.experiment(f"compatibility-{function}-dk{d_k}-seed{seed}", config)


def _parameters(records: Sequence[RunRecord]) -> str:
    sizes = sorted({record.parameters for record in records})
    return f"{sizes[0] / 1e6:.2f} to {sizes[-1] / 1e6:.2f} million parameters"


def _difference(records: Records, function: Function, other: Function, d_k: int, *, of_bleu: bool) -> Interval:
    """Return how much a function differs from another at one d_k, in BLEU or in log perplexity.

    The interval is that of seeds. In perplexity itself a bad function would have a larger spread than a good one, so
    that one spread could not be pooled.
    """
    value = attrgetter("bleu") if of_bleu else _log_perplexity
    groups = {cell: [value(record) for record in of_cell] for cell, of_cell in records.items()}
    return interval_of_difference(groups[(function, d_k)], groups[(other, d_k)], groups.values())


def _log_perplexity(record: RunRecord) -> float:
    return log(record.dev_perplexity)


def _as_percent(of_logarithm: Interval) -> str:
    """Describe a difference of logarithms as that of the perplexities, in percent.

    >>> _as_percent(Interval(log(1.5), log(1.1)))
    '+50.0 % (+36.4 to +65.0)'
    """
    at, width = of_logarithm.difference, of_logarithm.half_width
    middle, low, high = (100 * expm1(each) for each in (at, at - width, at + width))
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"


def _verdict(records: Records) -> str:
    largest = max(d_k for _, d_k in records)
    perplexities = {
        function: mean(map(attrgetter("dev_perplexity"), of_cell))
        for (function, d_k), of_cell in records.items()
        if d_k == largest
    }
    listed = ", ".join(f"{function} {perplexity:.2f}" for function, perplexity in perplexities.items())
    difference = _difference(records, "dot", "scaled", largest, of_bleu=False)
    what = {True: "costs perplexity", False: "saves perplexity", None: "makes no difference beyond the seeds'"}
    return (
        f"At d_k = {largest}, leaving out the factor 1 / √d_k {what[difference.is_above_zero]}"
        f" ({_as_percent(difference)});"
        f" perplexity: {listed}."
    )


def _table(records: Records) -> Table:
    d_ks = sorted({d_k for _, d_k in records})
    functions = list(dict.fromkeys(function for function, _ in records))
    columns = ("function", "score", *(f"{what}, d_k = {d_k}" for what in ("PPL", "BLEU") for d_k in d_ks))
    rows: list[tuple[Cell, ...]] = [
        (
            function,
            FORMULAS[function],
            *(mean(map(attrgetter("dev_perplexity"), records[(function, d_k)])) for d_k in d_ks),
            *(mean(map(attrgetter("bleu"), records[(function, d_k)])) for d_k in d_ks),
        )
        for function in functions
    ]
    record = next(iter(records.values()))[0]
    caption = (
        f"Means of {len(SEEDS)} seeds. PPL on {record.dev_text}, per token; BLEU on"
        f" {record.test_text or record.dev_text}: `{record.scores['sacrebleu']['signature']}`."
    )
    formats = {name: ".2f" if name.startswith("PPL") else ".1f" for name in columns[2:]}
    return Table("", columns, tuple(rows), caption, formats)


def _table_of_differences(records: Records) -> Table:
    d_ks = sorted({d_k for _, d_k in records})
    functions = [function for function in dict.fromkeys(function for function, _ in records) if function != "scaled"]
    rows: list[tuple[Cell, ...]] = []
    for function, d_k in product(functions, d_ks):
        perplexity, bleu = (_difference(records, function, "scaled", d_k, of_bleu=of_bleu) for of_bleu in (False, True))
        low, high = (perplexity.difference + sign * perplexity.half_width for sign in (-1, 1))
        percents = (100 * expm1(each) for each in (perplexity.difference, low, high))
        rows.append((function, d_k, *percents, *bleu.cells))
    columns = ("function", "d_k", "PPL, %", "from", "to", "BLEU, difference", "± BLEU")
    formats = dict.fromkeys(columns[2:6], "+.1f") | {"± BLEU": ".1f"}
    return Table("-differences", columns, tuple(rows), "Differences from the scaled dot product.", formats)


def _draw(records: Records, path: Path) -> None:
    d_ks = sorted({d_k for _, d_k in records})
    functions = list(dict.fromkeys(function for function, _ in records))
    figure, panels = new_panels(9.5, 3.9, n_columns=2)
    scales: Sequence[tuple[Callable[[RunRecord], float], Callable[[float], float], str]] = (
        (_log_perplexity, exp, "perplexity on dev"), (attrgetter("bleu"), float, "BLEU"),
    )  # fmt: skip
    for panel, (value, back, label) in zip(panels, scales, strict=True):
        half_width = half_width_of_mean(len(SEEDS), [list(map(value, of_cell)) for of_cell in records.values()])
        for number, (function, colour) in enumerate(zip(functions, COLOURS, strict=False)):
            values = [[value(record) for record in records[(function, d_k)]] for d_k in d_ks]
            beside = [d_k * 1.04**number for d_k in d_ks]  # so that the intervals do not cover each other
            low, middle, high = ([back(mean(each) + by) for each in values] for by in (-half_width, 0.0, half_width))
            panel.vlines(beside, low, high, color=colour)
            panel.plot(beside, middle, "o-", color=colour, label=FORMULAS[function], markersize=5)
            for x, each in zip(beside, values, strict=True):
                panel.plot([x] * len(each), list(map(back, each)), ".", color=colour, markersize=4, alpha=0.6)
        panel.set(xlabel="d_k", ylabel=label)
        set_log_axis(panel, "x", d_ks, base=2)
    least, most = panels[0].get_ylim()
    set_log_axis(panels[0], "y", [each for each in PERPLEXITIES if least <= each <= most])
    panels[0].legend(frameon=False, fontsize=9)
    panels[0].set_title("Dots: single seeds; lines: their means, with 95 % intervals", loc="left", fontsize=9.5)
    save_svg(figure, path)


# ---- time and memory


def measured_costs(
    experiments: Experiments, functions: Sequence[Function], d_ks: Sequence[int], lengths: Sequence[int]
) -> tuple[Costs, str]:
    """Return the cost of each function at each size and the machine it was measured on, cached beside the records."""
    sizes = list(product(functions, d_ks, lengths))

    def measure() -> list[dict[str, Any]]:
        machine = machine_description(torch.device("cpu"))
        return [
            {"function": function, "d_k": d_k, "n": n, "ms": cost.milliseconds, "mb": cost.kept_mb, "machine": machine}
            for (function, d_k, n), cost in _median_costs(sizes).items()
        ]

    rows = experiments.measurement("compatibility", "costs", measure, settings={"repetitions": N_REPETITIONS})
    found = {(row["function"], row["d_k"], row["n"]): Cost(row["ms"], row["mb"]) for row in rows}
    return {size: found[size] for size in sizes}, rows[0]["machine"]


def _median_costs(sizes: Sequence[tuple[Function, int, int]]) -> Costs:
    """Measure the cost of each function at each size: medians over interleaved repetitions."""
    measured: dict[tuple[Function, int, int], list[Cost]] = {size: [] for size in sizes}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for repetition in range(N_REPETITIONS + 1):
            for size in sizes:
                cost = cost_of_function(*size)
                if repetition > 0:  # the first is a warm-up
                    measured[size].append(cost)
    return {
        size: Cost(median(each.milliseconds for each in costs), costs[0].kept_mb) for size, costs in measured.items()
    }


def cost_of_function(function: Function, d_k: int, length: int) -> Cost:
    """Return the time of a forward and a backward pass of attention, and the memory kept between them."""
    config = StackConfig(1, N_HEADS * d_k, 1, N_HEADS, d_k, d_k, compatibility=function)
    compatibility = make_compatibility(config)
    if isinstance(compatibility, torch.nn.Module):
        for weight in compatibility.parameters():
            torch.nn.init.normal_(weight, std=d_k**-0.5)
    q_BHTK, k_BHSK, v_BHSK = (torch.randn(N_SENTENCES, N_HEADS, length, d_k, requires_grad=True) for _ in range(3))
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    started = time.perf_counter()
    with saved_tensors_hooks(keep, lambda tensor: tensor):
        if compatibility is None:
            out_BHTK, _ = dot_product_attention(q_BHTK, k_BHSK, v_BHSK)
        else:
            out_BHTK, _ = weighted_values(compatibility(q_BHTK, k_BHSK), v_BHSK)
        total = out_BHTK.sum()
    total.backward()  # type: ignore[no-untyped-call]
    return Cost(1000 * (time.perf_counter() - started), sum(kept.values()) / 1e6)


def megabytes_of_pairs(function: Function, d_k: int, length: int) -> float:
    """Return the kept memory with an element for each pair of positions, by count, in fp32.

    These are the weights, and the hidden layer of additive attention with d_k elements for each pair.
    """
    n_pairs = N_SENTENCES * N_HEADS * length**2
    return 4 * n_pairs * (1 + d_k if function == "additive" else 1) / 1e6


def _table_of_costs(costs: Costs) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (function, d_k, length), cost in costs.items():
        scaled = costs[("scaled", d_k, length)]
        ratios = cost.milliseconds / scaled.milliseconds, cost.kept_mb / scaled.kept_mb
        pairs_mb = megabytes_of_pairs(function, d_k, length)
        rows.append((function, d_k, length, cost.milliseconds, ratios[0], cost.kept_mb, pairs_mb, ratios[1]))
    columns = ("function", "d_k", "positions", "ms", "relative to scaled", "kept, MB", "pairs, MB", "relative, memory")
    return Table("-costs", columns, tuple(rows), formats=dict.fromkeys(columns[3:], ".2f"))


# ---- claims


def _claims(records: Records, costs: Costs) -> tuple[Claim, ...]:
    at_small, at_large = (_difference(records, "additive", "dot", d_k, of_bleu=False) for d_k in (SMALL, LARGE))
    sophisticated = {
        (function, d_k): _difference(records, function, "scaled", d_k, of_bleu=False)
        for function, d_k in product(SOPHISTICATED, D_KS)
    }
    better = [cell for cell, interval in sophisticated.items() if interval.is_above_zero is False]
    worse = [cell for cell, interval in sophisticated.items() if interval.is_above_zero is True]
    additive = {size[1:]: cost for size, cost in costs.items() if size[0] == "additive"}
    slower = [cost.milliseconds / costs[("dot", *size)].milliseconds for size, cost in additive.items()]
    larger = [cost.kept_mb / costs[("dot", *size)].kept_mb for size, cost in additive.items()]
    is_trained = all(map(are_trained_to_the_end, records.values()))
    return (
        Claim(
            "While for small values of d_k the two mechanisms perform similarly",
            "section 3.2.1",
            agreement(at_small.is_within(log1p(NEARLY_IDENTICAL)), is_trained=is_trained),
            f"Perplexity of additive against that of unscaled dot products: {_as_percent(at_small)} at d_k = {SMALL};"
            f" similar: within {NEARLY_IDENTICAL:.0%}.",
        ),
        Claim(
            "additive attention outperforms dot product attention without scaling for larger values of d_k",
            "section 3.2.1",
            agreement((-at_large).is_above_zero, is_trained=is_trained),
            f"Perplexity of additive against that of unscaled dot products: {_as_percent(at_large)} at d_k = {LARGE}.",
        ),
        Claim(
            "dot-product attention is much faster and more space-efficient in practice",
            "section 3.2.1",
            agreement(min(slower) > 1 and min(larger) > 1),
            f"Additive attention takes {min(slower):.1f} to {max(slower):.1f} times its time and keeps"
            f" {min(larger):.1f} to {max(larger):.1f} times its memory.",
        ),
        Claim(
            "determining compatibility is not easy and [...] a more sophisticated compatibility function than dot"
            " product may be beneficial",
            "section 6.2 (B)",
            agreement(True if better and not worse else None, is_trained=is_trained),
            f"Of {len(sophisticated)} comparisons of additive and bilinear with scaled dot products, {len(better)} have"
            f" a lower perplexity by more than the interval of seeds, {len(worse)} a higher one.",
        ),
    )
