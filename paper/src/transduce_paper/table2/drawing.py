"""The plots of Table 2: BLEU over training FLOPs, its course over FLOPs and minutes, and by the amount of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transduce_paper.drawing import COLOURS, new_panels, save_svg, set_log_axis
from transduce_paper.printed import PRINTED
from transduce_paper.sizes import size_description
from transduce_paper.table2.systems import SYSTEMS
from transduce_paper.table2.text import size_of
from transduce_paper.table2.training import TRANSFORMER, Trained
from transduce_paper.table3.rows import row_at_scale
from transduce_paper.table_plots import FlopsPoint, draw_bleu_over_flops

__all__ = ["draw_amounts", "draw_courses", "draw_flops"]


def draw_flops(systems: Mapping[str, Trained], path: Path) -> None:
    """Draw BLEU over training FLOPs: our systems above, the paper's below."""
    record = systems[TRANSFORMER].records[0]
    ours = [
        FlopsPoint(name, each.flops_by_rule, each.bleu, name.startswith(TRANSFORMER))
        for name, each in systems.items()
        if SYSTEMS[name].direction == "en-de"
    ]
    printed = [
        FlopsPoint(name, row.flops_de, row.bleu_de, name.startswith(TRANSFORMER))
        for name, row in PRINTED.table2.items()
        if row.flops_de is not None and row.bleu_de is not None
    ]
    flops = "training FLOPs (time x sustained FLOP/s)"
    size = size_description(row_at_scale("base", "paper"))
    draw_bleu_over_flops(
        (
            (f"Ours: {size_of(record)}", flops, f"BLEU, {record.test_text or record.dev_text}", ours),
            (f"Paper: base {size}", flops, "BLEU, newstest2014 en-de", printed),
        ),
        path,
    )


def draw_courses(systems: Mapping[str, Trained], path: Path) -> None:
    """Draw BLEU at each validation of seed 1: over FLOPs by count on the left, over minutes on the right."""
    figure, panels = new_panels(10.5, 4.6, n_columns=2)
    for name, each, style in _styles(systems):
        courses = each.flops_so_far, [point.update * each.minutes_per_update for point in each.curve]
        for panel, so_far in zip(panels, courses, strict=True):
            points = [(x, at.bleu) for x, at in zip(so_far, each.curve, strict=True) if at.bleu is not None]
            panel.plot(*zip(*points, strict=True), "o-", markersize=4, label=name, **style)
    panels[0].set_xscale("log")
    set_log_axis(panels[1], "x")
    for panel, label in zip(panels, ("training FLOPs so far, by count", "minutes of training so far"), strict=True):
        panel.set_xlabel(label)
        panel.set_ylim(bottom=0)
    panels[0].set_ylabel("BLEU on dev")
    panels[0].set_title("BLEU of checkpoints", loc="left")
    panels[0].legend(frameon=False, fontsize=9, loc="lower right")
    save_svg(figure, path)


def draw_amounts(systems: Mapping[str, Trained], n_all: int, path: Path) -> None:
    """Draw BLEU by the number of training pairs; ``n_all`` is that of the whole text."""
    figure, (panel,) = new_panels(9.5, 4.6)
    for name, each, style in _styles(systems):
        points = [(n_pairs, record.bleu) for n_pairs, record in each.on_fewer.items()] + [(n_all, each.bleu)]
        panel.plot(*zip(*points, strict=True), "o-", label=name, **style)
    set_log_axis(panel, "x", sorted({*next(iter(systems.values())).on_fewer, n_all}))
    panel.set(xlabel="sentence pairs to train on", ylabel="BLEU on the test text")
    panel.legend(frameon=False, fontsize=9)
    save_svg(figure, path)


def _styles(systems: Mapping[str, Trained]) -> Iterator[tuple[str, Trained, dict[str, Any]]]:
    """Yield each system with its line: wider for Transformers."""
    for (name, each), colour in zip(systems.items(), COLOURS, strict=False):
        yield name, each, {"color": colour, "linewidth": 2.4 if name.startswith(TRANSFORMER) else 1.4}
