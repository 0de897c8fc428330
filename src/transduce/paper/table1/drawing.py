"""The curves of Table 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.paper.drawing import COLOURS, GREY, INK, new_panels, save_svg
from transduce.paper.table1.compared_layers import COMPARED
from transduce.paper.table1.layer_comparison import ATTENTION, RECURRENT, Measured
from transduce.paper.table1.layer_costs import Place

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_costs", "draw_crossing"]


def draw_costs(measured: Measured, path: Path) -> None:
    """Time and operations of all layers, over n and over d."""
    sizes = measured.sizes
    figure, panels = new_panels(10.5, 7.6, 2, 2)
    operations: Mapping[Place, float] = {place: count.whole for place, count in measured.operations.items()}
    rows = (("Time", "milliseconds", measured.times_ms), ("Operations", "multiplications and additions", operations))
    for row, (what, unit, values) in enumerate(rows):
        over_n, over_d = panels[2 * row : 2 * row + 2]
        _curves(over_n, [n for n, _ in sizes.over_n], sizes.over_n, values)
        _curves(over_d, [d for _, d in sizes.over_d], sizes.over_d, values)
        over_n.set(xlabel=f"n, positions, at d = {sizes.at_d}", ylabel=unit)
        over_d.set(xlabel=f"d, width, at n = {sizes.at_n:,}", ylabel=unit)
        over_n.set_title(f"{what} of the whole layer over n", loc="left")
        over_d.set_title(f"{what} of the whole layer over d", loc="left")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    save_svg(figure, path)


def _curves(panel: Axes, x: list[int], places: list[tuple[int, int]], values: Mapping[Place, float]) -> None:
    """One line a layer."""
    for layer, colour, marker in zip(COMPARED, COLOURS, "osvd^X", strict=False):
        y = [values[Place(layer, *place)] for place in places]
        dashes = "--" if "contiguous" in layer.name else "-"  # as many operations as the dilated one
        panel.plot(x, y, color=colour, marker=marker, markersize=5, linewidth=1.6, linestyle=dashes, label=layer.name)
    _show_powers_of_two(panel, x)


def _show_powers_of_two(panel: Axes, x: Sequence[float]) -> None:
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xticks(x, [f"{size:,g}" for size in x])
    panel.minorticks_off()


def draw_crossing(measured: Measured, path: Path) -> None:
    """Self-attention's cost as a multiple of the LSTM's, over n / d."""
    sizes, operations, times_ms = measured.sizes, measured.operations, measured.times_ms
    figure, (panel,) = new_panels(8.5, 5)
    factors, d = sizes.crossing_n_per_d, sizes.crossing_d[-1]
    pairs = [(Place(ATTENTION, *size), Place(RECURRENT, *size)) for size in sizes.around_crossing(d)]
    by_formula = [n / d for n, d in sizes.around_crossing(d)]
    own = [operations[one].own / operations[other].own for one, other in pairs]
    whole = [operations[one].whole / operations[other].whole for one, other in pairs]
    panel.plot(factors, by_formula, color=INK, linewidth=2, label="n² d / n d², the paper's formulas")
    panel.plot(factors, own, color=INK, linestyle="--", label="operations without projections")
    panel.plot(factors, whole, color=INK, linestyle=":", label="operations of whole layers")
    for d, colour in zip(sizes.crossing_d, COLOURS, strict=False):
        pairs = [(Place(ATTENTION, *size), Place(RECURRENT, *size)) for size in sizes.around_crossing(d)]
        ratios = [times_ms[one] / times_ms[other] for one, other in pairs]
        panel.plot(factors, ratios, color=colour, marker="o", markersize=4.5, label=f"time, d = {d}")
    _show_powers_of_two(panel, factors)
    panel.axhline(1, color=GREY, linewidth=1)
    panel.text(0.02, 0.96, "above 1: self-attention costs more", transform=panel.transAxes, color=GREY, va="top")
    panel.text(0.98, 0.04, "below 1: the LSTM costs more", transform=panel.transAxes, color=GREY, ha="right")
    panel.set(xlabel="n / d", ylabel="cost of self-attention / cost of the LSTM")
    panel.set_title("The crossing: at n = d by formula", loc="left")
    figure.legend(loc="outside right upper", frameon=False)
    save_svg(figure, path)
