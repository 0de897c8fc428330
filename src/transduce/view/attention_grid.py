"""Every head of every layer as a small map, side by side, as static SVG."""
# L layers, H heads, Q words that look, K words that are looked at

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from transduce.errors import ShapeError
from transduce.view.svg import HEAD_COLOURS, INK, QUIET, RULE, Weights, document, shade, text

__all__ = ["attention_grid"]

MARGIN, GAP, LABEL = 20, 12, 58  # round the drawing; between maps; where the layers are named
LARGEST_MAP, LARGEST_CELL = 96, 8
N_SHADES = 12


def attention_grid(weights_LHQK: Weights, *, title: str, marked: Collection[tuple[int, int]] = ()) -> str:
    """An SVG drawing with a row of maps for each layer, the first at the top; maps of ``marked`` heads have a frame.

    In a map, each row is a word that looks and each column a word that is looked at, from the first to the last.
    ``marked`` are pairs of layer and head, both from 0. ``title`` is not drawn: it is what a screen reader says.
    Raises ShapeError if the array has not four axes, or an empty one.

    >>> import numpy as np
    >>> drawing = attention_grid(np.eye(3)[None, None], title="One head")
    >>> drawing.count("head 1"), drawing.count("<path")
    (1, 1)
    """
    if weights_LHQK.ndim != 4 or 0 in weights_LHQK.shape:
        raise ShapeError(
            f"a grid needs weights (layers, heads, queries, keys), none of them 0; got {weights_LHQK.shape}"
        )
    n_layers, n_heads, n_queries, n_keys = weights_LHQK.shape
    cell = min(LARGEST_CELL, LARGEST_MAP / max(n_queries, n_keys))
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
            parts += _map(weights_LHQK[layer, head], x, y, cell, head, is_marked=(layer, head) in marked)
    return document(
        parts,
        width=left + n_heads * (width + GAP) - GAP + MARGIN,
        height=top + n_layers * (height + GAP) - GAP + MARGIN,
        title=title,
    )


def _map(weights_QK: Weights, x: float, y: float, cell: float, head: int, *, is_marked: bool) -> Iterator[str]:
    """The weights as squares of one unit, those of one shade in one path."""
    squares: defaultdict[int, list[str]] = defaultdict(list)
    for row, weights in enumerate(weights_QK.tolist()):
        for column, weight in enumerate(weights):
            if step := round(shade(weight) * N_SHADES):
                squares[step].append(f"M{column} {row}h1v1h-1z")
    n_queries, n_keys = weights_QK.shape
    colour = HEAD_COLOURS[head % len(HEAD_COLOURS)]
    yield f'<g transform="translate({x:.2f} {y:.2f}) scale({cell:.3f})" fill="{colour}">'
    for step, paths in sorted(squares.items()):
        yield f'<path d="{"".join(paths)}" opacity="{step / N_SHADES:.2f}"/>'
    yield (
        f'<rect width="{n_keys}" height="{n_queries}" fill="none" stroke="{INK if is_marked else RULE}" '
        f'stroke-width="{2.5 if is_marked else 1}" vector-effect="non-scaling-stroke"/>'
    )
    yield "</g>"
