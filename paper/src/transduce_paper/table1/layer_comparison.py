"""Measurements of all layers of Table 1, at the sizes of ``Sizes``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from transduce_paper.table1.compared_layers import COMPARED, ComparedLayer, rounds_until_convergence
from transduce_paper.table1.graph_measures import longest_chain, longest_path
from transduce_paper.table1.layer_costs import Case, Operations, count_operations, median_times_ms

__all__ = ["ATTENTION", "FULL", "RECURRENT", "TEST", "Measured", "Sizes", "measure"]

ATTENTION, RECURRENT = COMPARED[0], COMPARED[1]


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
class Measured:
    """Counts and times of all layers."""

    sizes: Sizes
    operations: Mapping[Case, Operations]
    of_width: Mapping[ComparedLayer, tuple[Operations, ...]]  # at each k or r, at_n and at_d
    times_ms: Mapping[Case, float]
    chains: Mapping[ComparedLayer, tuple[int, ...]]  # at each graph_n
    paths: Mapping[ComparedLayer, tuple[int | None, ...]]
    rounds: int | None  # of the recurrent cell, at the first graph_n; later signals fade below rounding


def measure(sizes: Sizes, device: torch.device) -> Measured:
    """Count operations, chains and paths, and measure times on ``device``; random numbers are torch's global ones."""
    crossings = [size for d in sizes.crossing_d for size in sizes.around_crossing(d)]
    compared = [Case(layer, n, d) for layer in COMPARED for n, d in (*sizes.over_n, *sizes.over_d)]
    cases = list(
        dict.fromkeys(compared + [Case(layer, *size) for layer in (ATTENTION, RECURRENT) for size in crossings])
    )
    return Measured(
        sizes,
        operations={case: _operations(case) for case in cases},
        of_width={layer: _of_width(layer, sizes) for layer in COMPARED},
        times_ms=median_times_ms(cases, n_repetitions=sizes.n_repetitions, device=device),
        chains={layer: tuple(_chain(layer, n, sizes.graph_d) for n in sizes.graph_n) for layer in COMPARED},
        paths={layer: tuple(_path(layer, n, sizes.graph_d) for n in sizes.graph_n) for layer in COMPARED},
        rounds=rounds_until_convergence(sizes.graph_n[0], sizes.graph_d),
    )


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
