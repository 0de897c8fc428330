"""Table 1: the paper's formulas beside the same quantities counted and measured on real layers."""

from __future__ import annotations

import torch

from transduce_paper.experiments import Experiments
from transduce_paper.growth import crossing, per_unit
from transduce_paper.report import Cell, Report, Table, how_to_reproduce, picture
from transduce_paper.request import Request
from transduce_paper.table1.claims import claims_about_layers
from transduce_paper.table1.compared_layers import COMPARED, D_K, KERNEL_WIDTH, NEIGHBOURHOOD
from transduce_paper.table1.convolutions import about_convolutions, claims_about_convolutions, count_convolutions
from transduce_paper.table1.drawing import draw_costs, draw_crossing
from transduce_paper.table1.exponents import exponents_of, listed
from transduce_paper.table1.layer_comparison import (
    ATTENTION,
    FULL,
    RECURRENT,
    TEST,
    Measured,
    Sizes,
    measure,
    measured_times,
)
from transduce_paper.table1.layer_costs import Case

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


RATIOS = ("operations without projections", "operations, whole layers", "time")


def make_table1(experiments: Experiments, request: Request) -> Report:
    """Count and measure Table 1 and the claims of section 4, on the layers of ``transduce.model.sequence_layers``.

    Times are of the device of ``experiments``; the other quantities are counted and do not depend on a machine.
    """
    sizes = experiments.pick(FULL, test=TEST)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        times = measured_times(experiments, sizes)
        measured = measure(sizes, times)
        convolutions = count_convolutions(ATTENTION, sizes.of_convolutions, k=KERNEL_WIDTH)
    hardware = times.machine
    return Report(
        "Table 1: complexity, sequential operations and path length of a layer",
        (
            _summary(measured),
            picture("table1", "Time and operations of each layer over n and d"),
            how_to_reproduce("table1", scale=experiments.scale, seeds="seed 1", hardware=hardware),
            _introduction(sizes),
            *_about_complexity(measured, hardware),
            *_about_sequence(measured),
            *_about_paths(measured),
            *about_convolutions(convolutions),
            *_about_crossing(measured),
            picture("table1-crossover", "Cost of self-attention over the cost of the LSTM, for four widths d"),
        ),
        drawings={
            "table1": lambda path: draw_costs(measured, path),
            "table1-crossover": lambda path: draw_crossing(measured, path),
        },
        claims=(*claims_about_layers(measured), *claims_about_convolutions(convolutions)),
        finding=_verdict(measured),
        name="table1",
    )


def _verdict(measured: Measured) -> str:
    """Summarise: the exponents of operations are the paper's, those of time are not."""
    fits = exponents_of(measured)
    (own_n, own_d, *_, time_n, _), (lstm_n, lstm_d, *_) = fits[ATTENTION], fits[RECURRENT]
    d = measured.sizes.crossing_d[-1]
    n_crossing = _crossings(measured, d)[-1]
    if isinstance(n_crossing, float):
        crossing = f"self-attention becomes slower than the LSTM only at n = {n_crossing:,.0f}"
    else:
        crossing = f"self-attention becomes slower than the LSTM {n_crossing or 'at no measured n'}"
    return (
        f"Counted operations grow as the paper says (self-attention n^{own_n:.2f} d^{own_d:.2f}, LSTM n^{lstm_n:.2f}"
        f" d^{lstm_d:.2f}), and so do sequential operations and path lengths; time does not: self-attention takes"
        f" n^{time_n:.2f}, and at d = {d} {crossing}, not at n = d."
    )


def _introduction(sizes: Sizes) -> str:
    return f"""\
## What is compared

A layer maps n states of width d to n states of width d. We count and measure real layers: self-attention (heads of
width {D_K}), an LSTM, convolutions of width k = {KERNEL_WIDTH}, and self-attention restricted to a neighbourhood of
r = {NEIGHBOURHOOD}, which is computed as in a Transformer with `model.attention = "restricted"`. All are causal: a
position sees itself and earlier positions. The paper's table has four rows; contiguous kernels and separable
convolutions are from the text of section 4.

`n^a d^b` are exponents of a power law, fitted by least squares to logarithms over n = {listed(sizes.n)} at
d = {sizes.at_d} and over d = {listed(sizes.d)} at n = {sizes.at_n}. Sequential operations and path lengths are those
at n = {listed(sizes.graph_n)}."""


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
    for layer, fits in exponents_of(measured).items():
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
                listed(measured.chains[layer]),
                layer.path,
                listed(measured.paths[layer]),
            )
        )
    return Table("", columns, tuple(rows))


def _about_complexity(measured: Measured, hardware: str) -> tuple[str | Table, ...]:
    operations, times_ms, sizes = measured.operations, measured.times.ms, measured.sizes
    rows = tuple(
        (layer.name, n, d, operations[case].own, operations[case].whole, times_ms[case])
        for layer in COMPARED
        for n, d in dict.fromkeys((*sizes.over_n, *sizes.over_d))
        for case in (Case(layer, n, d),)
    )
    return (
        """\
## Complexity per layer

Operations are the multiplications and additions of matrix products, counted by torch while a layer runs on one
sentence; elementwise operations (softmax, gates, biases) are not counted. Self-attention also has four d x d
projections, for queries, keys, values and output: 8 n d² operations. The paper's column leaves them out, so the column
*without projections* has the exponents of its formula. Those of the whole layer lie between the exponents of the two
parts.

The formulas also leave out constants. An LSTM has four gates with two matrices each: 16 n d² operations. Restricted
attention processes queries in blocks of r, each with the 2 r - 1 positions that any of them may see: almost twice what
is needed, so it grows slightly faster than r. A separable convolution costs k n d + n d², so k hardly matters.

Time follows operations only where they dominate: every call has overhead, the scores of long sentences do not fit into
the cache, and each step of a recurrent layer multiplies its matrices with a single vector.""",
        Table(
            "-costs",
            ("layer", "n", "d", "operations without projections", "operations, whole layer", "ms"),
            rows,
            f"Forward pass of one sentence; {hardware}; medians of {sizes.n_repetitions} interleaved repetitions.",
            {"operations without projections": ",", "operations, whole layer": ",", "ms": ".3f"},
        ),
        Table(
            "-exponents",
            ("layer", *EXPONENTS),
            tuple((layer.name, *fits) for layer, fits in exponents_of(measured).items()),
            f"Exponents with three decimals; those over k or r at n = {sizes.at_n} and d = {sizes.at_d}.",
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

The longest chain of dependent torch calls from a layer's input to its output, found by following every tensor through
the layer (d = {measured.sizes.graph_d}). A call that computes a tensor is one operation, whatever its size: as in the
paper, a sum over n positions inside a matrix product counts as one. The LSTM runs cell by cell, since torch's own
kernel hides its steps in one call.

A program may have a longer chain than necessary, so the LSTM is also checked differently: its cell is applied at all
positions at once, each time from the current state of the left neighbour. The layer's output is reached after
{_rounds(rounds)} at n = {sizes[0]}.""",
        Table(
            "-sequential",
            ("layer", "paper", *(f"n = {n}" for n in sizes), "per additional position"),
            tuple(rows),
            formats={"per additional position": ".2f"},
        ),
    )


def _rounds(rounds: int | None) -> str:
    return "no number of rounds" if rounds is None else f"{rounds} rounds, no fewer,"


def _about_paths(measured: Measured) -> tuple[str | Table, ...]:
    sizes = measured.sizes.graph_n
    rows = tuple(
        (layer.name, layer.path, *paths, layer.exact_path_text, layer.exact_path(sizes[-1]))
        for layer, paths in measured.paths.items()
    )
    return (
        """\
## Maximum path length

Output i of a layer is linked to input j if the derivative of output i with respect to input j is not zero.
Breadth-first search then finds the smallest number of layers (for the LSTM: steps of its cell) that links the two most
distant positions. *By formula* is the exact number behind the paper's O(). The dilated stack begins with
dilation 1, and each further layer has k times that of the one below.

A path length says how far a signal travels, not how well: the derivative only has to differ from zero.""",
        Table("-paths", ("layer", "paper", *(f"n = {n}" for n in sizes), "by formula", f"at n = {sizes[-1]}"), rows),
    )


def _about_crossing(measured: Measured) -> tuple[str | Table, ...]:
    rows = tuple((d, *_crossings(measured, d)) for d in measured.sizes.crossing_d)
    columns = ("d", "n² d and n d²", "operations without projections", "operations, whole layers", "time")
    return (
        f"""\
## Where self-attention becomes more expensive than the LSTM

By the paper's formulas this is at n = d: "self-attention layers are faster than recurrent layers when the sequence
length n is smaller than the representation dimensionality d". The table has the n above which self-attention costs
more than the LSTM, searched from n = {measured.sizes.crossing_n_per_d[0]:g} d to n =
{measured.sizes.crossing_n_per_d[-1]:g} d; an empty cell means that it never does in that range. Counting operations,
the constants move the crossing: 4 n² d against 16 n d² gives n = 4 d, and with the 8 n d² of self-attention's
projections n = 2 d. Time, here of one sentence at a time, has its own crossing: each recurrent step waits for the one
before it, and self-attention is bound by memory.""",
        Table("-crossover", columns, rows, formats=dict.fromkeys(columns, ",.0f")),
        Table(
            "-ratios",
            ("d", "n", *RATIOS),
            _ratios(measured),
            "Cost of self-attention divided by that of the LSTM, as in the plot below.",
            dict.fromkeys(RATIOS, ".2f"),
        ),
    )


def _ratios(measured: Measured) -> tuple[tuple[Cell, ...], ...]:
    """Return d, n and the ratios of self-attention to the LSTM: operations without projections, all, time."""
    operations = measured.operations
    return tuple(
        (
            d,
            n,
            operations[attention].own / operations[lstm].own,
            operations[attention].whole / operations[lstm].whole,
            measured.times.ratios[n, d],
        )
        for width in measured.sizes.crossing_d
        for n, d in measured.sizes.around_crossing(width)
        for attention, lstm in ((Case(ATTENTION, n, d), Case(RECURRENT, n, d)),)
    )


def _crossings(measured: Measured, d: int) -> tuple[Cell, ...]:
    cases = [(Case(ATTENTION, *size), Case(RECURRENT, *size)) for size in measured.sizes.around_crossing(d)]
    n, operations = [attention.n for attention, _ in cases], measured.operations
    pairs = (
        [(size * size * d, size * d * d) for size in n],
        [(operations[attention].own, operations[recurrent].own) for attention, recurrent in cases],
        [(operations[attention].whole, operations[recurrent].whole) for attention, recurrent in cases],
        [(measured.times.ratios[attention.n, d], 1.0) for attention, _ in cases],
    )
    crossings = [crossing(n, *zip(*each, strict=True)) for each in pairs]
    return tuple(f"below {n[0]:,}" if size == 0 else size for size in crossings)
