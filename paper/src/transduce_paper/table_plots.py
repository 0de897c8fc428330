"""Plots of Tables 2 to 4: our results in one panel, the paper's printed ones in another, each with its model size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from transduce_paper.drawing import COLOURS, GREY, INK, label_ends, new_panels, save_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BarGroup", "FlopsPoint", "RowPoint", "draw_bleu_over_flops", "draw_f1", "draw_perplexities"]


@dataclass(frozen=True, slots=True)
class FlopsPoint:
    """A system of Table 2."""

    name: str
    flops: float  # of training
    bleu: float
    is_transformer: bool


def draw_bleu_over_flops(panels: Sequence[tuple[str, str, str, Sequence[FlopsPoint]]], path: Path) -> None:
    """Draw BLEU over training FLOPs; ``panels`` are (title, x label, y label, points), one below the other."""
    figure, axes = new_panels(9.5, 3.7 * len(panels), n_rows=len(panels))
    for panel, (title, x_label, y_label, points) in zip(axes, panels, strict=True):
        for point in points:
            colour = _highlight(point.is_transformer)
            panel.plot(point.flops, point.bleu, "o", markersize=8, color=colour, clip_on=False)
        panel.set_xscale("log")
        panel.minorticks_off()
        panel.margins(y=0.14)
        decades = [log10(point.flops) for point in points]
        panel.set_xlim(10.0 ** floor(min(decades)), 10.0 ** ceil(max(decades)))
        panel.set(xlabel=x_label, ylabel=y_label)
        panel.set_title(title, loc="left", fontsize=10.5)
    for panel, (_, _, _, points) in zip(axes, panels, strict=True):
        labels = [(p.flops, p.bleu, f"{p.name}, {p.bleu:.1f}", _highlight(p.is_transformer)) for p in points]
        label_ends(figure, panel, labels, in_column=True)
    save_svg(figure, path)


@dataclass(frozen=True, slots=True)
class RowPoint:
    """A row of Table 3."""

    name: str
    change: str
    group: str  # A to E, or "big"
    perplexity: float
    paper_perplexity: float
    effect: str  # relative to base; a key of ``EFFECTS``


# Effect of a row on our perplexity -> colour and marker.
EFFECTS = {
    "as in the paper": (COLOURS[0], "o"),
    "opposite": (COLOURS[1], "X"),
    "ours only": (COLOURS[3], "D"),
    "paper only": (GREY, "o"),
    "none in either": (GREY, "o"),
    "not learned": (INK, "x"),
}
LEGEND = {
    "as in the paper": "effect as in the paper",
    "opposite": "effect opposite to the paper's",
    "ours only": "effect, but none in the paper",
    "paper only": "no effect beyond the interval of seeds",
    "not learned": "has not learned to translate",
}


def draw_perplexities(
    rows: Sequence[RowPoint],
    *,
    base: tuple[float, float, float],  # our mean, and the ends of its 95 % interval over seeds
    paper_base: float,
    titles: tuple[str, str],  # of our panel and the paper's
    labels: tuple[str, str],  # of their x axes
    path: Path,
) -> None:
    """Draw the perplexity of each row of Table 3 beside base, grouped as in the paper."""
    positions, position = [], 0.0
    for number, row in enumerate(rows):
        position += 1 if number == 0 or row.group == rows[number - 1].group else 1.6
        positions.append(position)
    figure, (ours, theirs) = new_panels(10.5, 0.27 * position + 2.0, n_columns=2)
    mean, low, high = base
    ours.axvspan(low, high, color=COLOURS[0], alpha=0.13, linewidth=0)
    ours.axvline(mean, color=INK, linewidth=1)
    theirs.axvline(paper_base, color=INK, linewidth=1)
    for row, y in zip(rows, positions, strict=True):
        colour, marker = EFFECTS[row.effect]
        ours.plot((mean, row.perplexity), (y, y), color=colour, linewidth=1.2)
        ours.plot(row.perplexity, y, marker, color=colour, markersize=7)
        theirs.plot((paper_base, row.paper_perplexity), (y, y), color=GREY, linewidth=1.2)
        theirs.plot(row.paper_perplexity, y, "o", color=INK, markersize=6)
    for panel, title, label in zip((ours, theirs), titles, labels, strict=True):
        panel.set_ylim(position + 0.8, 0.2)
        panel.grid(visible=False, axis="y")
        panel.set_xlabel(label)
        panel.set_title(fill(title, 48, break_on_hyphens=False), loc="left", fontsize=9.5)
    ours.set_yticks(positions, [f"{row.name}: {row.change}" for row in rows])
    theirs.set_yticks(positions, [""] * len(positions))
    for panel in (ours, theirs):
        panel.tick_params(axis="y", length=0)
    shown = {row.effect.replace("none in either", "paper only") for row in rows}
    for effect, words in LEGEND.items():
        if effect in shown:
            colour, marker = EFFECTS[effect]
            ours.plot([], [], marker, color=colour, markersize=7, label=words)
    ours.fill_between([], [], [], color=COLOURS[0], alpha=0.13, label="95 % interval of another base seed")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    save_svg(figure, path)


@dataclass(frozen=True, slots=True)
class BarGroup:
    """Parsers of Table 4 that were evaluated alike: (name, F1, is it a Transformer) of each."""

    title: str
    bars: Sequence[tuple[str, float, bool]]


def draw_f1(groups: Sequence[BarGroup], path: Path) -> None:
    """Draw F1 as horizontal bars from 0 to 100, one panel per group below the other."""
    heights = [len(group.bars) + 2.2 for group in groups]
    figure, panels = new_panels(9.5, 0.27 * sum(heights) + 0.4, n_rows=len(groups), heights=heights)
    for panel, group in zip(panels, groups, strict=True):
        _bars(panel, group)
    panels[-1].set_xlabel("labelled F1, %")
    save_svg(figure, path)


def _bars(panel: Axes, group: BarGroup) -> None:
    for y, (_, f1, is_transformer) in enumerate(group.bars):
        panel.barh(y, f1, height=0.62, color=COLOURS[0] if is_transformer else "#c4c4c4")
        panel.annotate(f"{f1:.1f}", (f1, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    panel.set_yticks(range(len(group.bars)), [name for name, _, _ in group.bars])
    panel.tick_params(axis="y", length=0)
    panel.grid(visible=False, axis="y")
    panel.set(xlim=(0, 104), ylim=(len(group.bars) - 0.4, -0.6))
    panel.set_title(group.title, loc="left", fontsize=10)


def _highlight(is_transformer: bool) -> str:
    return COLOURS[0] if is_transformer else "#5a5a5a"
