"""Attention as lines between query and key words, as in figures 3 to 5 of the paper: static SVG.

Shapes: T query positions, S key positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from unicodedata import east_asian_width

import numpy as np

from transduce.errors import ShapeError
from transduce.view.svg import HEAD_COLOURS, INK, QUIET, Weights, document, shade, shortened, text

__all__ = ["HeadLines", "LinePanel", "attention_lines"]

ROW, MARGIN, GAP = 23, 20, 44  # height of a word; around the drawing; between panels
LINES_WIDTH, CELL, BAR = 150, 12, 54  # between the words; a cell of the strip; the strip of a single head
LETTER, MAX_WORD_LENGTH = 7.9, 18  # width of a letter in pixels, an upper estimate; characters of a word
TITLE_LINE, LEGEND_LINE, SWATCH, HEADER = 18, 20, 23, 18
MIN_DRAWN_WEIGHT = 0.04  # the weakest line
N_STRONGEST = 3  # lines of each query where all queries are drawn
STRONG = 0.25  # keys with a greater weight are printed bold where one query is drawn


@dataclass(frozen=True, slots=True, eq=False)
class HeadLines:
    """The lines of one head."""

    name: str  # in the legend
    colour: int  # index, from 0
    weights: Weights  # (T, S)
    mark: str = ""  # above its cells, where one query is drawn


@dataclass(frozen=True, slots=True, eq=False)
class LinePanel:
    """One panel of a drawing: some heads between the same words, for all queries or for the one at ``query``.

    Raises ShapeError if there is no head, or if the weights of a head do not fit the words.
    """

    title: tuple[str, ...]  # lines
    queries: tuple[str, ...]  # T, on the left
    keys: tuple[str, ...]  # S, on the right
    heads: tuple[HeadLines, ...]
    query: int | None = None  # from 0

    def __post_init__(self) -> None:
        expected = (len(self.queries), len(self.keys))
        for head in self.heads:
            if head.weights.shape != expected:
                raise ShapeError(f"{head.name!r} has weights of shape {head.weights.shape}; its words need {expected}")
        if not self.heads or 0 in expected:
            raise ShapeError(f"nothing to draw: {len(self.heads)} heads between {expected[0]} and {expected[1]} words")
        if self.query is not None and not 0 <= self.query < expected[0]:
            raise ShapeError(f"query must be from 0 to {expected[0] - 1}, got {self.query}")


def attention_lines(panels: Sequence[LinePanel], *, title: str, note: str = "") -> str:
    """Return an SVG drawing of all panels side by side. ``title`` is its alternative text, ``note`` its last line.

    Width and opacity of a line grow with the weight; weights below 0.04 have none. A panel of all queries has the three
    greatest weights of each; a panel of one query has all, and a strip before the keys with one cell per head (or a bar
    as long as the weight for a single head). Raises ShapeError if there is no panel.

    >>> weights = np.array([[0.1, 0.9], [1.0, 0.0]])
    >>> panel = LinePanel(("Head 1",), ("a", "cat"), ("a", "cat"), (HeadLines("1", 0, weights),))
    >>> attention_lines([panel], title="A cat").count("<path")
    3
    """
    if not panels:
        raise ShapeError("nothing to draw: got no panels")
    layouts: list[_Layout] = []
    for panel in panels:
        layouts.append(_Layout.from_panel(panel, layouts[-1].right_edge + GAP if layouts else MARGIN))
    top = max(layout.top for layout in layouts)
    rows = max(max(len(panel.queries), len(panel.keys)) for panel in panels)
    parts = [
        part
        for panel, layout in zip(panels, layouts, strict=True)
        for part in _panel_parts(panel, replace(layout, top=top))
    ]
    bottom = top + ROW * rows
    right_edge = layouts[-1].right_edge
    if note:
        parts.append(text(note, MARGIN, bottom + 22, fill=QUIET, font_size=12))
        bottom, right_edge = bottom + 22, max(right_edge, MARGIN + 6.6 * len(note))
    return document(parts, width=right_edge + MARGIN, height=bottom + MARGIN, title=title)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Coordinates of the parts of a panel, in pixels."""

    left: float
    query_edge: float  # where the words on the left end, and lines begin
    key_edge: float  # where lines end
    words: float  # where the words on the right begin
    right_edge: float
    legend: float
    top: float  # of the first word

    @staticmethod
    def from_panel(panel: LinePanel, left: float) -> _Layout:
        query_edge = left + _width(panel.queries) + 18
        key_edge = query_edge + LINES_WIDTH
        strip = 0 if panel.query is None else (BAR if len(panel.heads) == 1 else CELL * len(panel.heads))
        words = key_edge + strip + 8
        titles = max(len(line) for line in panel.title) * LETTER if panel.title else 0
        right_edge = max(words + _width(panel.keys), left + titles)
        legend = MARGIN + TITLE_LINE * len(panel.title) + 6
        n_lines = -(-len(panel.heads) // _heads_per_line(panel, right_edge - left)) if len(panel.heads) > 1 else 0
        top = legend + LEGEND_LINE * n_lines + HEADER + 4
        return _Layout(left, query_edge, key_edge, words, right_edge, legend, top)

    def y(self, row: int) -> float:
        """Return the y coordinate of the middle of a row."""
        return self.top + ROW * (row + 0.5)


def _width(words: Sequence[str]) -> float:
    """Return the width of the widest word in pixels; East Asian wide characters count twice."""
    shown = (shortened(word, MAX_WORD_LENGTH) for word in words)
    return max(sum(2 if east_asian_width(letter) in "FW" else 1 for letter in word) for word in shown) * LETTER


def _legend_item(panel: LinePanel) -> float:
    return SWATCH + max(len(head.name) for head in panel.heads) * LETTER + 8


def _heads_per_line(panel: LinePanel, width: float) -> int:
    return max(1, int(width // _legend_item(panel)))


def _panel_parts(panel: LinePanel, layout: _Layout) -> Iterator[str]:
    for number, line in enumerate(panel.title):
        weight = "600" if number == 0 else "400"
        yield text(line, layout.left, MARGIN + TITLE_LINE * (number + 0.75), font_weight=weight)
    yield text("query", layout.query_edge - 8, layout.top - 6, text_anchor="end", fill=QUIET, font_size=12)
    yield text("key", layout.words, layout.top - 6, fill=QUIET, font_size=12)
    if len(panel.heads) > 1:  # the title names a single head
        yield from _legend(panel, layout)
    rows = range(len(panel.queries)) if panel.query is None else [panel.query]
    if panel.query is not None:
        yield (
            f'<rect x="{layout.left:g}" y="{layout.y(panel.query) - ROW / 2:g}" '
            f'width="{layout.query_edge - layout.left:g}" height="{ROW}" rx="4" fill="#efece4"/>'
        )
    for slot, head in enumerate(panel.heads):
        yield from _lines(panel, layout, slot, head, rows)
        if panel.query is not None:
            yield from _strip(panel, layout, slot, head, panel.query)
    yield from _words(panel, layout)


def _legend(panel: LinePanel, layout: _Layout) -> Iterator[str]:
    per_line = _heads_per_line(panel, layout.right_edge - layout.left)
    for number, head in enumerate(panel.heads):
        x = layout.left + _legend_item(panel) * (number % per_line)
        y = layout.legend + LEGEND_LINE * (number // per_line) + LEGEND_LINE / 2
        yield (
            f'<line x1="{x:g}" x2="{x + 18:g}" y1="{y:g}" y2="{y:g}" stroke="{_colour(head)}" '
            f'stroke-width="4"{_dashes(head)}/>'
        )
        yield text(head.name, x + SWATCH, y + 4.5, fill=QUIET, font_size=13)


def _lines(panel: LinePanel, layout: _Layout, slot: int, head: HeadLines, rows: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a head; lines of several heads run side by side."""
    n_heads = len(panel.heads)
    fan = ((slot + 0.5) / n_heads - 0.5) * ROW * (0.7 if n_heads > 1 else 0)
    bend = (layout.key_edge - layout.query_edge) * 0.45
    yield f'<g fill="none" stroke="{_colour(head)}"{_dashes(head)}>'
    for row in rows:
        weights = head.weights[row]
        threshold = (
            MIN_DRAWN_WEIGHT if panel.query is not None else max(MIN_DRAWN_WEIGHT, np.sort(weights)[-N_STRONGEST:][0])
        )
        for column, weight in enumerate(weights.tolist()):
            if weight >= threshold:
                y1, y2 = layout.y(row) + fan, layout.y(column) + fan
                yield (
                    f'<path d="M{layout.query_edge:.1f} {y1:.1f}C{layout.query_edge + bend:.1f} {y1:.1f} '
                    f'{layout.key_edge - bend:.1f} {y2:.1f} {layout.key_edge:.1f} {y2:.1f}" '
                    f'stroke-width="{1 + 2.5 * weight:.2f}" opacity="{shade(weight):.2f}"/>'
                )
    yield "</g>"


def _strip(panel: LinePanel, layout: _Layout, slot: int, head: HeadLines, row: int) -> Iterator[str]:
    """Yield one cell per key, or one bar per key if the panel has a single head."""
    is_single = len(panel.heads) == 1
    if head.mark and not is_single:
        middle = layout.key_edge + CELL * (slot + 0.5)
        yield text(head.mark, middle, layout.top - 6, text_anchor="middle", fill=QUIET, font_size=10)
    yield f'<g fill="{_colour(head)}">'
    for column, weight in enumerate(head.weights[row].tolist()):
        width = BAR * weight if is_single else CELL
        opacity = 1.0 if is_single else shade(weight)
        if weight >= MIN_DRAWN_WEIGHT / 4:
            x, y = layout.key_edge + (0 if is_single else CELL * slot), layout.y(column) - ROW / 2 + 2
            yield f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{ROW - 4}" opacity="{opacity:.2f}"/>'
    yield "</g>"


def _words(panel: LinePanel, layout: _Layout) -> Iterator[str]:
    max_weights = np.zeros(len(panel.keys))
    if panel.query is not None:
        max_weights = np.max([head.weights[panel.query] for head in panel.heads], axis=0)
    for row, word in enumerate(panel.queries):
        is_muted = panel.query is not None and row != panel.query
        yield text(
            shortened(word, MAX_WORD_LENGTH), layout.query_edge - 8, layout.y(row) + 5,
            text_anchor="end", fill=QUIET if is_muted else INK, font_weight="600" if row == panel.query else "400",
        )  # fmt: skip
    for row, word in enumerate(panel.keys):
        is_muted = panel.query is not None and max_weights[row] < STRONG
        yield text(
            shortened(word, MAX_WORD_LENGTH), layout.words, layout.y(row) + 5,
            fill=QUIET if is_muted else INK, font_weight="600" if max_weights[row] >= STRONG else "400",
        )  # fmt: skip


def _colour(head: HeadLines) -> str:
    return HEAD_COLOURS[head.colour % len(HEAD_COLOURS)]


def _dashes(head: HeadLines) -> str:
    return ' stroke-dasharray="6 3"' if head.colour // len(HEAD_COLOURS) % 2 else ""
