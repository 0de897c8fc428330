"""Plots of Table 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transduce_paper.drawing import COLOURS, GREY, INK, new_panels, save_svg, set_log_axis
from transduce_paper.table1.compared_layers import COMPARED
from transduce_paper.table1.layer_comparison import ATTENTION, RECURRENT, Measured
from transduce_paper.table1.layer_costs import Case

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_costs", "draw_crossing"]


def draw_costs(measured: Measured, path: Path) -> None:
    """Draw time and operations of all layers over n and over d."""
    sizes = measured.sizes
    figure, panels = new_panels(10.5, 7.6, 2, 2)
    operations: Mapping[Case, float] = {case: count.whole for case, count in measured.operations.items()}
    rows = (("Time", "milliseconds", measured.times.ms), ("Operations", "multiplications and additions", operations))
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


def _curves(panel: Axes, x: list[int], sizes: list[tuple[int, int]], values: Mapping[Case, float]) -> None:
    """Draw one line per layer."""
    for layer, colour, marker in zip(COMPARED, COLOURS, "osvd^X", strict=False):
        y = [values[Case(layer, *size)] for size in sizes]
        dashes = "--" if "contiguous" in layer.name else "-"  # as many operations as the dilated one
        panel.plot(x, y, color=colour, marker=marker, markersize=5, linewidth=1.6, linestyle=dashes, label=layer.name)
    _set_log_axes(panel, x)


def _set_log_axes(panel: Axes, x: Sequence[float]) -> None:
    panel.set_yscale("log")
    set_log_axis(panel, "y")
    set_log_axis(panel, "x", x, base=2)


def draw_crossing(measured: Measured, path: Path) -> None:
    """Draw the cost of self-attention over that of the LSTM, over n / d; one panel per width d."""
    sizes, operations = measured.sizes, measured.operations
    n_columns = min(2, len(sizes.crossing_d))
    n_rows = len(sizes.crossing_d) // n_columns
    figure, panels = new_panels(5 * n_columns, 3.1 * n_rows + 0.7, n_rows, n_columns)
    factors = sizes.crossing_n_per_d
    for panel, d in zip(panels, sizes.crossing_d, strict=True):
        pairs = [(Case(ATTENTION, *size), Case(RECURRENT, *size)) for size in sizes.around_crossing(d)]
        own = [operations[one].own / operations[other].own for one, other in pairs]
        whole = [operations[one].whole / operations[other].whole for one, other in pairs]
        times = [measured.times.ratios[size] for size in sizes.around_crossing(d)]
        panel.axhline(1, color=GREY, linewidth=1)
        panel.plot(factors, factors, color=INK, linewidth=1.5, label="n² d / n d², the paper's formulas")
        panel.plot(factors, own, color=GREY, linestyle="--", label="operations without projections")
        panel.plot(factors, whole, color=GREY, linestyle=":", label="operations of whole layers")
        panel.plot(factors, times, color=COLOURS[0], linewidth=2, marker="o", markersize=5, label="time")
        panel.set_ylim(0.1, 20)
        set_log_axis(panel, "y", (0.1, 0.2, 0.5, 1, 2, 5, 10, 20))
        set_log_axis(panel, "x", factors, base=2)
        panel.set_title(f"d = {d}", loc="left")
    for row in range(n_rows):
        panels[row * n_columns].set_ylabel("cost, self-attention / LSTM")
    for panel in panels[-n_columns:]:
        panel.set_xlabel("n / d")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    save_svg(figure, path)
