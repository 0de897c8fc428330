"""Table 1: the paper's formulas, and the same quantities counted and measured on the layers themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from transduce.paper.experiments import Experiments, machine_description
from transduce.paper.growth import crossing, exponent, per_unit
from transduce.paper.report import Cell, Report, Table
from transduce.paper.request import Request
from transduce.paper.table1.compared_layers import COMPARED, D_K, KERNEL_WIDTH, NEIGHBOURHOOD, ComparedLayer
from transduce.paper.table1.drawing import draw_costs, draw_crossing
from transduce.paper.table1.layer_comparison import ATTENTION, RECURRENT, SHORT, WHOLE, Measured, Sizes, measure
from transduce.paper.table1.layer_costs import Place

__all__ = ["make_table1"]

EXPONENTS = (
    "operations without projections: n",
    "d",
    "k or r",
    "whole layer: n",
    "whole layer: d",
    "time: n",
    "time: d",
)


def make_table1(experiments: Experiments, request: Request) -> Report:
    """Table 1 and the claims of section 4, with the layers of ``transduce.model.sequence_layers``.

    Times are of the experiments's device, the rest is counted and does not depend on a machine.
    """
    sizes = SHORT if request.is_short else WHOLE
    with torch.random.fork_rng():
        torch.manual_seed(1)
        measured = measure(sizes, experiments.device)
    return Report(
        "table1",
        "Table 1: complexity, sequential operations and path length of a layer",
        (
            _introduction(sizes),
            _summary(measured),
            *_about_complexity(measured, machine_description(experiments.device)),
            *_about_sequence(measured),
            *_about_paths(measured),
            *_about_crossing(measured),
        ),
        drawings={
            "table1": lambda path: draw_costs(measured, path),
            "table1-crossover": lambda path: draw_crossing(measured, path),
        },
    )


def _introduction(sizes: Sizes) -> str:
    return f"""\
A layer takes n states of width d to n others. Beside each formula of the paper stands what we count and measure on
layers that do the work: self-attention (heads of width {D_K}), an LSTM, convolutions of width k = {KERNEL_WIDTH}, and
self-attention restricted to a neighbourhood of r = {NEIGHBOURHOOD}. All read from left to right, as in a decoder: a
position learns of itself and of what is before it. The paper's table has four rows; contiguous kernels and separable
convolutions are from the text of section 4.

`n^a d^b` are exponents fitted by least squares to logarithms, over n = {_listed(sizes.n)} at d = {sizes.at_d} and over
d = {_listed(sizes.d)} at n = {sizes.at_n}. Sequential operations and path lengths are given at n =
{_listed(sizes.graph_n)}."""


def _summary(measured: Measured) -> Table:
    columns = (
        "layer",
        "complexity, paper",
        "operations without projections",
        "operations, whole layer",
        "time",
        "sequential operations, paper",
        "counted",
        "maximum path length, paper",
        "found",
    )
    rows: list[tuple[Cell, ...]] = []
    for layer, fits in _exponents(measured).items():
        own_n, own_d, own_width, whole_n, whole_d, time_n, time_d = fits
        width = f" {layer.widths.symbol}^{own_width:.2f}" if layer.widths else ""
        rows.append(
            (
                layer.name,
                layer.complexity,
                f"n^{own_n:.2f} d^{own_d:.2f}{width}",
                f"n^{whole_n:.2f} d^{whole_d:.2f}",
                f"n^{time_n:.2f} d^{time_d:.2f}",
                layer.sequential,
                _listed(measured.chains[layer]),
                layer.path,
                _listed(measured.paths[layer]),
            )
        )
    return Table("", columns, tuple(rows))


def _exponents(measured: Measured) -> dict[ComparedLayer, tuple[float | None, ...]]:
    """Of each layer: own operations over n, d and width, all operations over n and d, time over n and d."""
    sizes = measured.sizes
    own = {place: count.own for place, count in measured.operations.items()}
    whole = {place: count.whole for place, count in measured.operations.items()}

    def over_n(layer: ComparedLayer, values: Mapping[Place, float]) -> float:
        return exponent(sizes.n, [values[Place(layer, *place)] for place in sizes.over_n])

    def over_d(layer: ComparedLayer, values: Mapping[Place, float]) -> float:
        return exponent(sizes.d, [values[Place(layer, *place)] for place in sizes.over_d])

    return {
        layer: (
            over_n(layer, own),
            over_d(layer, own),
            exponent(layer.widths.values, [count.own for count in measured.of_width[layer]]) if layer.widths else None,
            over_n(layer, whole),
            over_d(layer, whole),
            over_n(layer, measured.times_ms),
            over_d(layer, measured.times_ms),
        )
        for layer in COMPARED
    }


def _listed(values: Sequence[int | None]) -> str:
    return ", ".join("none" if value is None else f"{value:,}" for value in values)


def _about_complexity(measured: Measured, clock: str) -> tuple[str | Table, ...]:
    operations, times_ms, sizes = measured.operations, measured.times_ms, measured.sizes
    rows = tuple(
        (layer.name, n, d, operations[place].own, operations[place].whole, times_ms[place])
        for layer in COMPARED
        for n, d in dict.fromkeys((*sizes.over_n, *sizes.over_d))
        for place in (Place(layer, n, d),)
    )
    return (
        """\
## Complexity per layer

Operations are multiplications and additions, counted by torch while a layer runs on one sentence; those on single
numbers (softmax, gates, biases) are not counted. Self-attention also has four products with d x d weights, which make
queries, keys, values and the output: 8 n d² operations. The paper's column has the products of positions with positions
only; *without projections* it is these that are counted, and the exponents are the formula's. Those of the whole layer
lie between those of its two parts.

The columns leave out constants, too. An LSTM has four gates with two matrices each, 16 n d² operations. Restricted
attention takes its queries in blocks of r and shows each block the 2 r - 1 positions that any of them may see, almost
twice what they need, so it grows a little faster than r. A separable convolution is k n d + n d², so k hardly counts in
it.

Time follows operations only where they are what takes time: a call has a price at any size, the scores of long
sentences do not fit into a cache, and each step of a recurrent layer multiplies its matrices with a single vector.""",
        Table(
            "-costs",
            ("layer", "n", "d", "operations without projections", "operations, whole layer", "ms"),
            rows,
            f"One sentence, forward. Time: {clock}; medians of {sizes.n_repetitions} repetitions, all cells in turn.",
            {"operations without projections": ",", "operations, whole layer": ",", "ms": ".3f"},
        ),
        Table(
            "-exponents",
            ("layer", *EXPONENTS),
            tuple((layer.name, *fits) for layer, fits in _exponents(measured).items()),
            f"The exponents by themselves; those over k or r at n = {sizes.at_n} and d = {sizes.at_d}.",
            dict.fromkeys(EXPONENTS, ".3f"),
        ),
    )


def _about_sequence(measured: Measured) -> tuple[str | Table, ...]:
    sizes, rounds = measured.sizes.graph_n, measured.rounds
    rows: list[tuple[Cell, ...]] = [
        (layer.name, layer.sequential, *chains, per_unit(sizes, chains)) for layer, chains in measured.chains.items()
    ]
    return (
        f"""\
## Sequential operations

The longest chain of calls to torch in which each needs the result of the one before it, from the layer's input to its
output, found by following every tensor through the layer (d = {measured.sizes.graph_d}). A call that writes numbers is
one operation, however many it writes: as in the paper, a sum over n positions within a matrix product counts as one,
though no machine does it in one step. The LSTM is taken cell by cell, as torch's own kernel hides its steps in one
call.

A chain in a program may be longer than it need be. The LSTM's need is seen apart: the step of its cell, taken at all
positions at once from whatever state the left neighbour has, gives the layer's output after {_rounds(rounds)}
at n = {sizes[0]}.""",
        Table(
            "-sequential",
            ("layer", "paper", *(f"n = {n}" for n in sizes), "for each further position"),
            tuple(rows),
            formats={"for each further position": ".2f"},
        ),
    )


def _rounds(rounds: int | None) -> str:
    return "no number of rounds" if rounds is None else f"{rounds} rounds and no fewer"


def _about_paths(measured: Measured) -> tuple[str | Table, ...]:
    sizes = measured.sizes.graph_n
    rows = tuple(
        (layer.name, layer.path, *paths, layer.exact_path_text, layer.exact_path(sizes[-1]))
        for layer, paths in measured.paths.items()
    )
    return (
        """\
## Maximum path length

The links of a layer are found by derivatives: output i is linked with input j where its derivative by it is not zero.
Breadth-first search then finds how many layers (or, for the LSTM, steps of its cell) a signal needs at least between
the two positions that are furthest apart in this sense. *By formula* is the exact number behind the paper's O(). The
dilated stack's first layer has dilation 1, each other k times that of the one below.

A path says how far a signal travels, not how well: that a derivative is not zero is all that is asked of it.""",
        Table("-paths", ("layer", "paper", *(f"n = {n}" for n in sizes), "by formula", f"at n = {sizes[-1]}"), rows),
    )


def _about_crossing(measured: Measured) -> tuple[str | Table, ...]:
    rows = tuple((d, *_crossings(measured, d)) for d in measured.sizes.crossing_d)
    columns = ("d", "n² d and n d²", "operations without projections", "operations, whole layers", "time")
    return (
        f"""\
## Where self-attention becomes dearer than recurrence

By the paper's formulas at n = d: "self-attention layers are faster than recurrent layers when the sequence length n is
smaller than the representation dimensionality d". Below is the n from which on self-attention costs more than the LSTM,
between n = {measured.sizes.crossing_n_per_d[0]:g} d and n = {measured.sizes.crossing_n_per_d[-1]:g} d; empty where it
does not up to there. By operations the constants move it: 4 n² d against 16 n d² gives n = 4 d, and with the 8 n d² of
self-attention's projections n = 2 d. Time has a crossing of its own: that of one sentence at a time on this machine,
where a recurrent step waits for the one before it, and self-attention for its memory.""",
        Table("-crossover", columns, rows, formats=dict.fromkeys(columns, ",.0f")),
    )


def _crossings(measured: Measured, d: int) -> tuple[Cell, ...]:
    places = [(Place(ATTENTION, *size), Place(RECURRENT, *size)) for size in measured.sizes.around_crossing(d)]
    n, operations, times_ms = [attention.n for attention, _ in places], measured.operations, measured.times_ms
    pairs = (
        [(size * size * d, size * d * d) for size in n],
        [(operations[attention].own, operations[recurrent].own) for attention, recurrent in places],
        [(operations[attention].whole, operations[recurrent].whole) for attention, recurrent in places],
        [(times_ms[attention], times_ms[recurrent]) for attention, recurrent in places],
    )
    found = [crossing(n, *zip(*each, strict=True)) for each in pairs]
    return tuple(f"below {n[0]:,}" if size == 0 else size for size in found)
