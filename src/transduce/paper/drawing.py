"""How all curves look, and how they are written: as SVG whose text is text, the same bytes each time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from transduce.errors import ConfigError
from transduce.files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "GREY", "INK", "new_figure", "new_panels", "save_svg", "style"]

# Told apart by those who do not see all colours, too (Okabe and Ito, 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5c00", "#444444")
INK, GREY = "#222222", "#9a9a9a"


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches, whose panels make room for each other.

    Raises ConfigError if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("drawing curves needs matplotlib; install transduce[plot]") from error
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def new_panels(width: float, height: float, n_rows: int = 1, n_columns: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure of so many inches, and its panels row by row, in the common style."""
    figure = new_figure(width, height)
    panels = [figure.add_subplot(n_rows, n_columns, number + 1) for number in range(n_rows * n_columns)]
    for panel in panels:
        style(panel)
    return figure, panels


def style(panel: Axes, *, grid: Literal["both", "x", "y"] | None = "both") -> None:
    """Two lines instead of a box, and a faint grid behind the curves, or none."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["left", "bottom"]].set_color(GREY)
    panel.tick_params(colors=INK, which="both", labelsize=9)
    panel.set_axisbelow(True)
    if grid is not None:
        panel.grid(axis=grid, color="#e6e6e6", linewidth=0.7)


def save_svg(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all, without the time of writing."""
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "transduce"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    write_text(path, out.getvalue())
