"""Common style of all plots, and reproducible SVG files whose text stays text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from math import ceil, floor, log10
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Literal

from transduce.errors import ConfigError
from transduce.files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS", "GREY", "INK", "label_ends", "log_ticks", "new_figure", "new_panels", "save_svg", "set_log_axis",
    "spread", "style",
]  # fmt: skip

# Distinguishable with colour vision deficiency (Okabe and Ito, 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5c00", "#444444")
INK, GREY = "#222222", "#767676"  # grey text keeps a contrast of 4.5 on white
MIN_GAP = 12  # between labels, in points
MAX_FINE_DECADES = 2.3  # decades with ticks at 1, 2 and 5


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches, with constrained layout.

    Raises ConfigError if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("plots need matplotlib, which is not installed; install matplotlib") from error
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def new_panels(
    width: float, height: float, n_rows: int = 1, n_columns: int = 1, *, heights: Sequence[float] | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure of a size in inches and its panels, row by row, in the common style.

    ``heights`` are the ratios of the rows; by default all are equal.
    """
    figure = new_figure(width, height)
    grid = figure.add_gridspec(n_rows, n_columns, height_ratios=heights)
    panels = [figure.add_subplot(grid[row, column]) for row in range(n_rows) for column in range(n_columns)]
    for panel in panels:
        style(panel)
    return figure, panels


def style(panel: Axes) -> None:
    """Apply the common style to a panel: no box, a faint grid behind the curves."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["left", "bottom"]].set_color(GREY)
    panel.tick_params(colors=INK, which="both", labelsize=9)
    panel.set_axisbelow(True)
    panel.grid(color="#e6e6e6", linewidth=0.7)


def log_ticks(low: float, high: float) -> list[float]:
    """Return round ticks of a logarithmic axis from ``low`` to ``high``: 1, 2 and 5 of each decade, or decades only.

    >>> log_ticks(1.3, 67), log_ticks(0.1, 10_000)
    ([2, 5, 10, 20, 50], [0.1, 1, 10, 100, 1000, 10000])
    """
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = (1, 2, 5) if log10(high / low) < MAX_FINE_DECADES else (1,)
    ticks = (float(f"{step}e{decade}") for decade in decades for step in steps)
    return [int(tick) if tick >= 1 else tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]


def set_log_axis(panel: Axes, axis: Literal["x", "y"], ticks: Sequence[float] | None = None, *, base: int = 10) -> None:
    """Make an axis logarithmic, with plain numbers (0.5, 2, 1,000) at ``ticks`` and no minor ticks.

    Without ``ticks``, round ones are chosen; call it after plotting.
    """
    which = panel.xaxis if axis == "x" else panel.yaxis
    (panel.set_xscale if axis == "x" else panel.set_yscale)("log", base=base)
    if ticks is None:
        limits = panel.get_xlim() if axis == "x" else panel.get_ylim()
        ticks = log_ticks(*limits)
        (panel.set_xlim if axis == "x" else panel.set_ylim)(limits)
    which.set_ticks(list(ticks), labels=[_plain(tick) for tick in ticks])
    panel.minorticks_off()


def _plain(number: float) -> str:
    """Format a tick: 0.5, 1,000, 10 million."""
    for unit, name in ((1e9, " billion"), (1e6, " million")):
        if number >= unit:
            return f"{number / unit:,g}{name}"
    return f"{number:,.10g}"


def label_ends(
    figure: Figure, panel: Axes, labels: Sequence[tuple[float, float, str, str]], *, in_column: bool = False
) -> None:
    """Label points or the ends of curves instead of drawing a legend; ``labels`` are (x, y, text, colour).

    Labels that would overlap are moved apart. With ``in_column`` they stand to the right of the
    panel, joined to their points by thin lines. Call it when limits and scales of the axes are final.
    """
    figure.draw_without_rendering()  # computes the layout, which transData needs
    in_order = sorted(labels, key=lambda label: label[1])
    wanted = [float(panel.transData.transform(label[:2])[1]) * 72 / figure.dpi for label in in_order]
    bottom, top = (panel.transAxes.transform((0, y))[1] * 72 / figure.dpi for y in (0, 1))
    for (x, y, text, colour), y_wanted, y_placed in zip(in_order, wanted, spread(wanted, MIN_GAP), strict=True):
        label = panel.annotate(text, (x, y), color=colour, fontsize=9, va="center", annotation_clip=False)
        if in_column:
            label.set(position=(1.03, (y_placed - bottom) / (top - bottom)), anncoords="axes fraction")
            panel.annotate(
                "",
                (x, y),
                xytext=(1.025, (y_placed - bottom) / (top - bottom)),
                textcoords="axes fraction",
                arrowprops={"arrowstyle": "-", "color": "#c4c4c4", "shrinkA": 0, "shrinkB": 5},
            )
        else:
            label.set(position=(7, y_placed - y_wanted), anncoords="offset points")


def spread(wanted: Sequence[float], min_gap: float) -> list[float]:
    """Return positions at least ``min_gap`` apart, as near as possible to ascending ``wanted`` ones.

    >>> spread([0, 1, 30], 10)
    [-4.5, 5.5, 30.0]
    """
    groups: list[list[float]] = []  # wanted positions of labels that touch each other

    def evenly_spaced(group: Sequence[float]) -> list[float]:
        return [mean(group) + min_gap * (number - (len(group) - 1) / 2) for number in range(len(group))]

    for each in wanted:
        groups.append([each])
        while len(groups) > 1 and evenly_spaced(groups[-1])[0] - evenly_spaced(groups[-2])[-1] < min_gap:
            last = groups.pop()
            groups[-1] += last
    return [position for group in groups for position in evenly_spaced(group)]


def save_svg(figure: Figure, path: Path) -> None:
    """Write a figure as SVG, atomically and without a time stamp."""
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "transduce"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    write_text(path, out.getvalue())
