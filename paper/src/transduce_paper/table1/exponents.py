"""Exponents of operations and times over n, d and widths, from what was counted and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from transduce_paper.growth import exponent
from transduce_paper.table1.compared_layers import COMPARED, ComparedLayer
from transduce_paper.table1.layer_comparison import Measured
from transduce_paper.table1.layer_costs import Case

__all__ = ["exponents_of", "listed"]


def exponents_of(measured: Measured) -> dict[ComparedLayer, tuple[float | None, ...]]:
    """Return the exponents of each layer: own operations over n, d, k or r; all operations and time over n and d."""
    sizes = measured.sizes
    own = {case: count.own for case, count in measured.operations.items()}
    whole = {case: count.whole for case, count in measured.operations.items()}

    def over_n(layer: ComparedLayer, values: Mapping[Case, float]) -> float:
        return exponent(sizes.n, [values[Case(layer, *size)] for size in sizes.over_n])

    def over_d(layer: ComparedLayer, values: Mapping[Case, float]) -> float:
        return exponent(sizes.d, [values[Case(layer, *size)] for size in sizes.over_d])

    return {
        layer: (
            over_n(layer, own),
            over_d(layer, own),
            exponent(layer.widths.values, [count.own for count in measured.of_width[layer]]) if layer.widths else None,
            over_n(layer, whole),
            over_d(layer, whole),
            over_n(layer, measured.times.ms),
            over_d(layer, measured.times.ms),
        )
        for layer in COMPARED
    }


def listed(values: Sequence[int | None]) -> str:
    """Return numbers as text; none where there is no number."""
    return ", ".join("none" if value is None else f"{value:,}" for value in values)
