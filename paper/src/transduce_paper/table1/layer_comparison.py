"""Measurements of all layers of Table 1, at the sizes of ``Sizes``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from transduce_paper.experiments import Experiments
from transduce_paper.machine import machine_description
from transduce_paper.table1.compared_layers import COMPARED, ComparedLayer, rounds_until_convergence
from transduce_paper.table1.graph_measures import longest_chain, longest_path
from transduce_paper.table1.layer_costs import Case, Operations, count_operations, median_times_ms

__all__ = ["ATTENTION", "FULL", "RECURRENT", "TEST", "Measured", "Sizes", "Times", "measure", "measured_times"]

ATTENTION, RECURRENT = COMPARED[0], COMPARED[1]
RATIO = f"{ATTENTION.name} / {RECURRENT.name}"  # in the cache


@dataclass(frozen=True, slots=True)
class Sizes:
    """The n and d at which layers are measured."""

    n: tuple[int, ...]  # at d
    at_d: int
    d: tuple[int, ...]  # at n
    at_n: int
    graph_n: tuple[int, ...]  # for chains and paths
    graph_d: int
    crossing_d: tuple[int, ...]
    crossing_n_per_d: tuple[float, ...]
    n_repetitions: int
    of_convolutions: tuple[tuple[int, int], ...]  # (n, d) at which separable convolutions have k = n

    @property
    def over_n(self) -> list[tuple[int, int]]:
        """Return (n, d) at fixed d."""
        return [(n, self.at_d) for n in self.n]

    @property
    def over_d(self) -> list[tuple[int, int]]:
        """Return (n, d) at fixed n."""
        return [(self.at_n, d) for d in self.d]

    def around_crossing(self, d: int) -> list[tuple[int, int]]:
        """Return (n, d) around n = d."""
        return [(round(d * factor), d) for factor in self.crossing_n_per_d]


FULL = Sizes(
    n=(128, 256, 512, 1024, 2048),
    at_d=128,
    d=(64, 128, 256, 512),
    at_n=1024,
    graph_n=(16, 32, 64, 128),
    graph_d=16,
    crossing_d=(32, 64, 128, 256),
    crossing_n_per_d=(0.5, 1, 2, 4, 8, 16),
    n_repetitions=15,
    of_convolutions=((32, 512), (512, 512), (2048, 512), (1024, 128)),
)
TEST = Sizes(
    n=(32, 64),
    at_d=16,
    d=(16, 32),
    at_n=32,
    graph_n=(8, 16),
    graph_d=4,
    crossing_d=(8,),
    crossing_n_per_d=(1, 8),
    n_repetitions=1,
    of_convolutions=((16, 8), (8, 8)),
)


@dataclass(frozen=True, slots=True)
class Times:
    """Times of forward passes, and the machine that took them."""

    ms: Mapping[Case, float]  # at each n and d
    ratios: Mapping[tuple[int, int], float]  # of self-attention to the LSTM, by n and d around the crossing
    machine: str


@dataclass(frozen=True, slots=True)
class Measured:
    """Counts and times of all layers."""

    sizes: Sizes
    operations: Mapping[Case, Operations]
    of_width: Mapping[ComparedLayer, tuple[Operations, ...]]  # at each k or r, at_n and at_d
    times: Times
    chains: Mapping[ComparedLayer, tuple[int, ...]]  # at each graph_n
    paths: Mapping[ComparedLayer, tuple[int | None, ...]]
    rounds: int | None  # of the recurrent cell, at the first graph_n; later signals fade below rounding


def measure(sizes: Sizes, times: Times) -> Measured:
    """Count operations, chains and paths; random numbers are torch's global ones."""
    compared, crossing = _cases(sizes)
    cases = dict.fromkeys(compared + [case for pair in crossing.values() for case in pair])
    return Measured(
        sizes,
        operations={case: _operations(case) for case in cases},
        of_width={layer: _of_width(layer, sizes) for layer in COMPARED},
        times=times,
        chains={layer: tuple(_chain(layer, n, sizes.graph_d) for n in sizes.graph_n) for layer in COMPARED},
        paths={layer: tuple(_path(layer, n, sizes.graph_d) for n in sizes.graph_n) for layer in COMPARED},
        rounds=rounds_until_convergence(sizes.graph_n[0], sizes.graph_d),
    )


def measured_times(experiments: Experiments, sizes: Sizes) -> Times:
    """Return the times of forward passes, cached beside the records."""
    compared, crossing = _cases(sizes)

    def measure() -> list[dict[str, Any]]:
        cases = dict.fromkeys(compared + [case for pair in crossing.values() for case in pair])
        ms = median_times_ms(cases, n_repetitions=sizes.n_repetitions, device=experiments.device)
        machine = machine_description(experiments.device)
        return [{"layer": case.layer.name, "n": case.n, "d": case.d, "ms": ms[case]} for case in compared] + [
            {"layer": RATIO, "n": n, "d": d, "ratio": ms[one] / ms[other]} for (n, d), (one, other) in crossing.items()
        ] + [{"machine": machine}]  # fmt: skip

    *rows, last = experiments.measurement("table1", "times", measure, settings={"repetitions": sizes.n_repetitions})
    found = {(row["layer"], row["n"], row["d"]): row for row in rows}
    return Times(
        {case: found[case.layer.name, case.n, case.d]["ms"] for case in compared},
        {size: found[RATIO, *size]["ratio"] for size in crossing},
        last["machine"],
    )


def _cases(sizes: Sizes) -> tuple[list[Case], dict[tuple[int, int], tuple[Case, Case]]]:
    """Return each layer at each n and d, and by n and d around the crossing, self-attention and the LSTM."""
    compared = [Case(layer, n, d) for layer in COMPARED for n, d in dict.fromkeys((*sizes.over_n, *sizes.over_d))]
    crossings = [size for d in sizes.crossing_d for size in sizes.around_crossing(d)]
    return compared, {size: (Case(ATTENTION, *size), Case(RECURRENT, *size)) for size in crossings}


def _operations(case: Case) -> Operations:
    layer = case.layer
    return count_operations(layer.make_countable(case.d), case.n, projections=layer.projections)


def _of_width(layer: ComparedLayer, sizes: Sizes) -> tuple[Operations, ...]:
    if layer.widths is None:
        return ()
    sequence_layers = [layer.widths.make(sizes.at_d, width) for width in layer.widths.values]
    return tuple(
        count_operations(sequence_layer, sizes.at_n, projections=layer.projections)
        for sequence_layer in sequence_layers
    )


def _chain(layer: ComparedLayer, n: int, d: int) -> int:
    sequence_layer = layer.make_countable(d)
    return longest_chain(lambda: sequence_layer(torch.randn(1, n, d), torch.ones(1, n, dtype=torch.bool)))


def _path(layer: ComparedLayer, n: int, d: int) -> int | None:
    return longest_path(layer.links(n, d), is_causal=layer.make_countable(d).is_causal)
