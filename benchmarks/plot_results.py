"""Draw the bar charts of ``docs/results.md`` from the CSV files beside them.

    python benchmarks/plot_results.py [FOLDER]

Reads ``FOLDER/*.csv`` and writes an SVG of the same name for each (FOLDER: ``docs/results``). The CSV files hold the
numbers of ``docs/results.md``, ``docs/performance.md`` and ``notebook``; nothing is measured here.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from needed import need

__all__ = ["PLOTS", "plot"]

OURS, BASELINE, PUBLISHED = "#0072b2", "#b8b8b8", "#d55e00"  # legible without colour vision
INK = "#222222"
Row = Mapping[str, str]


def plot(folder: Path, name: str) -> Path:
    """Draw ``folder/name.csv`` to ``folder/name.svg`` and return the path of the drawing."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    panels = PLOTS[name](rows)
    heights = [len(bars) + 1.2 for _, _, bars in panels]
    path = folder / f"{name}.svg"
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "transduce", "font.size": 10}):
        figure = Figure(figsize=(7.5, 0.32 * sum(heights) + 0.3), layout="constrained", facecolor="white")
        axes = figure.subplots(len(panels), 1, height_ratios=heights, sharex=True, squeeze=False)[:, 0]
        for axis, (title, unit, bars) in zip(axes, panels, strict=True):
            _draw(axis, title, unit, bars)
        axes[0].set_xlim(0, 1.12 * max(float(value) for _, _, bars in panels for _, value, _ in bars))
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    return path


Bar = tuple[str, str, str]  # label, value as printed, colour
Panel = tuple[str, str, list[Bar]]  # title, unit, bars from top to bottom


def _draw(axis: Any, title: str, unit: str, bars: Sequence[Bar]) -> None:
    labels, values, colours = zip(*bars, strict=True)
    drawn = axis.barh(range(len(bars)), [float(value) for value in values], color=colours, height=0.7)
    axis.bar_label(drawn, labels=values, padding=3)
    axis.set_yticks(range(len(bars)), labels)
    axis.invert_yaxis()
    axis.set_title(f"{title} ({unit})", loc="left", fontsize=10, fontweight="bold", color=INK)
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.tick_params(colors=INK, left=False, bottom=False, labelbottom=False)


def _by(rows: Sequence[Row], key: str) -> dict[str, list[Row]]:
    """Group rows by a column, in the order of the file."""
    return {value: [row for row in rows if row[key] == value] for value in dict.fromkeys(row[key] for row in rows)}


def _own_text(rows: Sequence[Row]) -> list[Panel]:
    return [
        (text, "sacreBLEU", [(row["system"], row["sacrebleu"], _colour(row["system"])) for row in group])
        for text, group in _by(rows, "text").items()
    ]


def _multi30k(rows: Sequence[Row]) -> list[Panel]:
    return [
        (text, "multi30k_bleu", [(row["system"], row["multi30k_bleu"], _colour(row["system"])) for row in group])
        for text, group in _by(rows, "test_set").items()
    ]


def _demo(rows: Sequence[Row]) -> list[Panel]:
    return [("transduce demo", "sacreBLEU", [(row["corpus"], row["sacrebleu"], OURS) for row in rows])]


def _parsing(rows: Sequence[Row]) -> list[Panel]:
    return [
        (recipe, "labelled F1", [(row["test_set"], row["f1"], OURS) for row in group])
        for recipe, group in _by(rows, "recipe").items()
    ]


def _speed(rows: Sequence[Row]) -> list[Panel]:
    return [
        (task, "tokens/s", [(row["system"], row["tokens_per_s"], _colour(row["system"])) for row in group])
        for task, group in _by(rows, "task").items()
    ]


def _colour(system: str) -> str:
    if system.startswith("published"):
        return PUBLISHED
    return OURS if system.startswith(("transduce", "recipe", "ensemble", "tuned")) else BASELINE


PLOTS: dict[str, Callable[[Sequence[Row]], list[Panel]]] = {
    "own-text": _own_text,
    "start": _own_text,
    "multi30k": _multi30k,
    "demo": _demo,
    "parsing": _parsing,
    "speed": _speed,
}


def main() -> None:
    """Draw every chart of the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1] / "docs" / "results")
    arguments = parser.parse_args()
    need(parser, "matplotlib")
    for name in PLOTS:
        print(plot(arguments.folder, name))


if __name__ == "__main__":
    main()
