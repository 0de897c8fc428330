"""Plots: plain log ticks, labels that do not overlap, and the plots of Tables 2 to 4."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest

from transduce_paper.table_plots import BarGroup, FlopsPoint, RowPoint, draw_bleu_over_flops, draw_f1, draw_perplexities

pytest.importorskip("matplotlib")

from transduce_paper.drawing import label_ends, new_panels, set_log_axis


def words(path: Path) -> list[str]:
    """Return the texts of an SVG."""
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]+)</text>", path.read_text(encoding="utf-8"))]


def test_log_axis_has_plain_numbers() -> None:
    _, (panel,) = new_panels(5, 4)
    panel.plot([0.5, 2000], [3, 40])
    panel.set_yscale("log")
    set_log_axis(panel, "y")
    set_log_axis(panel, "x", (0.5, 10, 2000, 3_000_000))
    assert [label.get_text() for label in panel.get_xticklabels()] == ["0.5", "10", "2,000", "3 million"]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["5", "10", "20"]
    assert not panel.get_xticks(minor=True).size


@pytest.mark.parametrize("in_column", [False, True])
def test_labels_at_the_ends_of_curves_do_not_overlap(in_column: bool) -> None:
    figure, (panel,) = new_panels(6, 4)
    ends = [(1.0, y, f"curve {y}", "#000000") for y in (0.5, 0.51, 0.52, 0.9)]
    panel.plot([0, 1], [0, 1])
    label_ends(figure, panel, ends, in_column=in_column)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in panel.texts if text.get_text()]
    assert len(boxes) == len(ends)
    assert all(below.y1 <= above.y0 + 1 for below, above in pairwise(sorted(boxes, key=lambda box: box.y0)))


def test_the_plots_of_the_tables_name_their_panels_and_points(tmp_path: Path) -> None:
    points = [FlopsPoint("LSTM", 2e14, 16.2, False), FlopsPoint("Transformer", 6e14, 26.4, True)]
    path = tmp_path / "plot.svg"
    draw_bleu_over_flops([("Ours: small", "FLOPs", "BLEU", points), ("Paper: large", "FLOPs", "BLEU", points)], path)
    assert {"Ours: small", "Paper: large", "LSTM, 16.2", "Transformer, 26.4"} <= set(words(path))
    rows = [
        RowPoint("A-h1", "h 1", "A", 12.0, 5.3, "as in the paper"),
        RowPoint("C-N8", "N 8", "C", 13.0, 4.9, "opposite"),
    ]
    titles, labels = ("Ours: small", "Paper: large"), ("our perplexity", "the paper's perplexity")
    draw_perplexities(rows, base=(10, 9, 11), paper_base=5, titles=titles, labels=labels, path=path)
    assert {*titles, *labels, "A-h1: h 1", "C-N8: N 8", "effect opposite to the paper's"} <= set(words(path))
    draw_f1([BarGroup("Paper: WSJ", [("Dyer", 91.7, False)]), BarGroup("Ours: GUM", [("gum", 68.7, True)])], path)
    assert {"Paper: WSJ", "Ours: GUM", "Dyer", "91.7", "gum", "68.7"} <= set(words(path))
