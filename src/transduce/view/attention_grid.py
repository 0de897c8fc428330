"""Attention maps of all heads and layers as small multiples: static SVG.

Shapes: L layers, H heads, T query positions, S key positions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from transduce.errors import ShapeError
from transduce.view.svg import HEAD_COLOURS, INK, QUIET, RULE, Weights, document, shade, text

__all__ = ["attention_grid"]

MARGIN, GAP, LABEL = 20, 12, 58  # around the drawing; between maps; for the layer labels
MAX_MAP, MAX_CELL = 96, 8
N_SHADES = 12


def attention_grid(weights_LHTS: Weights, *, title: str, marked: Collection[tuple[int, int]] = ()) -> str:
    """Return an SVG drawing with one row of maps per layer, the first layer at the top.

    Rows of a map are queries, columns are keys. ``marked`` heads, pairs of layer and head from 0, have a frame.
    ``title`` is the alternative text. Raises ShapeError unless the array has four axes, none of length 0.

    >>> import numpy as np
    >>> drawing = attention_grid(np.eye(3)[None, None], title="One head")
    >>> drawing.count("head 1"), drawing.count("<path")
    (1, 1)
    """
    if weights_LHTS.ndim != 4 or 0 in weights_LHTS.shape:
        raise ShapeError(
            f"weights must have shape (layers, heads, queries, keys), none of them 0; got {weights_LHTS.shape}"
        )
    n_layers, n_heads, n_queries, n_keys = weights_LHTS.shape
    cell = min(MAX_CELL, MAX_MAP / max(n_queries, n_keys))
    width, height = cell * n_keys, cell * n_queries
    left, top = MARGIN + LABEL, MARGIN + 20
    parts = []
    for head in range(n_heads):
        middle = left + head * (width + GAP) + width / 2
        parts.append(text(f"head {head + 1}", middle, top - 8, text_anchor="middle", fill=QUIET, font_size=12))
    for layer in range(n_layers):
        y = top + layer * (height + GAP)
        middle = y + height / 2 + 4
        parts.append(text(f"layer {layer + 1}", left - 10, middle, text_anchor="end", fill=QUIET, font_size=12))
        for head in range(n_heads):
            x = left + head * (width + GAP)
            parts += _map(weights_LHTS[layer, head], x, y, cell, head, is_marked=(layer, head) in marked)
    note = "Rows are queries, columns are keys, from the top left; the darker a cell, the greater the weight."
    bottom = top + n_layers * (height + GAP) + 8
    parts.append(text(note, MARGIN, bottom, fill=QUIET, font_size=12))
    return document(
        parts,
        width=max(left + n_heads * (width + GAP) - GAP, MARGIN + 6.6 * len(note)) + MARGIN,
        height=bottom + MARGIN,
        title=title,
    )


def _map(weights_TS: Weights, x: float, y: float, cell: float, head: int, *, is_marked: bool) -> Iterator[str]:
    """Yield the map of one head as unit squares; squares of equal opacity share one path."""
    squares: defaultdict[int, list[str]] = defaultdict(list)
    for row, weights in enumerate(weights_TS.tolist()):
        for column, weight in enumerate(weights):
            if step := round(shade(weight) * N_SHADES):
                squares[step].append(f"M{column} {row}h1v1h-1z")
    n_queries, n_keys = weights_TS.shape
    colour = HEAD_COLOURS[head % len(HEAD_COLOURS)]
    yield f'<g transform="translate({x:.2f} {y:.2f}) scale({cell:.3f})" fill="{colour}">'
    for step, paths in sorted(squares.items()):
        yield f'<path d="{"".join(paths)}" opacity="{step / N_SHADES:.2f}"/>'
    yield (
        f'<rect width="{n_keys}" height="{n_queries}" fill="none" stroke="{INK if is_marked else RULE}" '
        f'stroke-width="{2.5 if is_marked else 1}" vector-effect="non-scaling-stroke"/>'
    )
    yield "</g>"
