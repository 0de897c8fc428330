"""Figure 1 as SVG: encoder left, decoder right, from the bottom up, with the weights of each box beside it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Literal

from transduce_paper.figure1.architecture import Architecture, Stack, Sublayer

__all__ = ["architecture_svg"]

WIDTH = 1120
BOX, TALL, LOW, GAP = 190, 50, 28, 26  # width of a box, heights, and from box to box
CENTRES = {"encoder": 400.0, "decoder": 720.0}
SKIP = 128  # of a residual connection from the centre
FRAME = 150  # half the width of a layer's frame
NOTE = 166  # of a note from the centre
ASIDE = 46  # of the outer two arrows into an attention
INK, SOFT, LINE = "#222222", "#6b6b6b", "#444444"
# As printed: embeddings pink, attention orange, norms yellow, feed-forward blue, linear lavender, softmax green.
FILLS = {
    "embedding": "#fce0e1",
    "attention": "#ffe2bb",
    "norm": "#f2f4c1",
    "feed-forward": "#c2e8f7",
    "linear": "#dcdfef",
    "softmax": "#cbe7d1",
    "layer": "#f3f3f4",
}
STYLE = (
    "text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;font-size:13.5px;fill:" + INK + "}"
    ".note{font-size:11.5px;fill:" + SOFT + "}.shape{font-size:11.5px;font-style:italic}.times{font-size:17px}"
    ".line{fill:none;stroke:" + LINE + ";stroke-width:1.3}.tied{fill:none;stroke:#b2546e;stroke-dasharray:5 4}"
)
Side = Literal["encoder", "decoder"]


class _Canvas:
    """Elements of an SVG, background first."""

    def __init__(self) -> None:
        self.behind: list[str] = []
        self.elements: list[str] = []

    def box(self, x: float, top: float, height: float, fill: str, lines: tuple[str, ...]) -> None:
        self.elements.append(
            f'<rect x="{x - BOX / 2:g}" y="{top:g}" width="{BOX}" height="{height:g}" rx="6" fill="{fill}" '
            f'stroke="{LINE}"/>'
        )
        first = top + height / 2 - 8 * (len(lines) - 1) + 4.8
        for number, line in enumerate(lines):
            self.text(x, first + 16 * number, line, anchor="middle")

    def text(self, x: float, y: float, words: str, *, kind: str = "", anchor: str = "start") -> None:
        css = f' class="{kind}"' if kind else ""
        self.elements.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{css}>{escape(words)}</text>')

    def path(self, *points: tuple[float, float], has_head: bool = True, kind: str = "line") -> None:
        """Draw a line with round corners and an arrowhead at its end."""
        pieces = [f"M{points[0][0]:g} {points[0][1]:g}"]
        for before, corner, after in zip(points, points[1:], points[2:], strict=False):
            start, end = _towards(corner, before), _towards(corner, after)
            pieces.append(f"L{start[0]:g} {start[1]:g}Q{corner[0]:g} {corner[1]:g} {end[0]:g} {end[1]:g}")
        pieces.append(f"L{points[-1][0]:g} {points[-1][1]:g}")
        head = ' marker-end="url(#head)"' if has_head else ""
        self.elements.append(f'<path class="{kind}" d="{"".join(pieces)}"{head}/>')

    def note(self, side: Side, middle: float, lines: tuple[str, ...]) -> None:
        """Write lines beside a box, on the outer side of its column."""
        sign, anchor = (-1, "end") if side == "encoder" else (1, "start")
        first = middle - 7 * (len(lines) - 1) + 4
        for number, line in enumerate(lines):
            self.text(CENTRES[side] + sign * NOTE, first + 14 * number, line, kind="note", anchor=anchor)

    def svg(self, top: float, bottom: float, title: str) -> str:
        head = (
            '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker>'
        )
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom - top:g}" '
            f'viewBox="0 {top:g} {WIDTH} {bottom - top:g}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            f"<defs>{head}</defs>",
            f'<rect y="{top:g}" width="{WIDTH}" height="{bottom - top:g}" fill="#ffffff"/>',
            *self.behind,
            *self.elements,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def _towards(start: tuple[float, float], end: tuple[float, float], radius: float = 7) -> tuple[float, float]:
    """Return a point near ``start`` on a horizontal or vertical line to ``end``."""
    way = end[0] - start[0], end[1] - start[1]
    length = max(abs(way[0]), abs(way[1]), 1e-9)
    share = min(radius, length / 2) / length
    return start[0] + way[0] * share, start[1] + way[1] * share


@dataclass(frozen=True, slots=True)
class _Top:
    """Upper end of a column, and the lower edge of its cross-attention box."""

    y: float
    cross: float | None


def architecture_svg(architecture: Architecture, *, title: str) -> str:
    """Return the whole figure; y is 0 where the tokens enter and decreases upwards."""
    canvas = _Canvas()
    encoder = _column(canvas, "encoder", architecture.encoder, architecture.d_model)
    decoder = _column(canvas, "decoder", architecture.decoder, architecture.d_model)
    _memory(canvas, encoder, decoder, architecture.d_model)
    top = min(_output(canvas, decoder.y, architecture), encoder.y - 60) - 30
    _tied_embeddings(canvas, architecture)
    canvas.text(24, top + 34, title, kind="times")
    canvas.text(24, top + 56, f"{architecture.n_parameters:,} parameters", kind="note")
    canvas.text(24, top + 72, "S source tokens, T target tokens; weights are (out, in)", kind="note")
    return canvas.svg(top, 52, title)


def _column(canvas: _Canvas, side: Side, stack: Stack, d_model: int) -> _Top:
    """Draw a column from the tokens at the bottom to the end of the stack."""
    x, length = CENTRES[side], "S" if side == "encoder" else "T"
    canvas.text(x, 20, "Inputs" if side == "encoder" else "Outputs (shifted right)", anchor="middle")
    canvas.text(x, 36, f"({length})", kind="shape", anchor="middle")
    y: float = -GAP - TALL
    canvas.path((x, 4), (x, y + TALL))
    canvas.box(x, y, TALL, FILLS["embedding"], ("Input" if side == "encoder" else "Output", "Embedding"))
    canvas.note(side, y + TALL / 2, (f"table {stack.embedding}", f"times sqrt({d_model})"))
    canvas.path((x, y), (x, y - GAP))
    y -= GAP + 12
    _position(canvas, side, x, y, stack.positions)
    y -= 12
    frame_bottom, cross = y - 22, None
    for sublayer in stack.sublayers:
        y = _sublayer(canvas, side, x, y, sublayer, f"({length}, {d_model})")
        if sublayer.is_cross:
            cross = y + LOW + 16 + TALL
    _frame(canvas, side, y - 16, frame_bottom, stack)
    if stack.has_last_norm:
        end = y - 16 - 20 - LOW
        canvas.path((x, y), (x, end + LOW))
        canvas.box(x, end, LOW, FILLS["norm"], ("Norm",))
        y = end
    return _Top(y, cross)


def _frame(canvas: _Canvas, side: Side, top: float, bottom: float, stack: Stack) -> None:
    """Draw the frame of one layer, with the number of layers."""
    canvas.behind.append(
        f'<rect x="{CENTRES[side] - FRAME:g}" y="{top:g}" width="{2 * FRAME}" height="{bottom - top:g}" rx="14" '
        f'fill="{FILLS["layer"]}" stroke="#9a9a9a"/>'
    )
    canvas.note(side, top + 2, (f"{stack.n_parameters:,} parameters each",))
    sign, anchor = (-1, "end") if side == "encoder" else (1, "start")
    canvas.text(CENTRES[side] + sign * NOTE, top - 12, f"{stack.n_layers} ×", kind="times", anchor=anchor)


def _position(canvas: _Canvas, side: Side, x: float, y: float, positions: str) -> None:
    """Draw the sum of embedding and position encoding."""
    canvas.elements.append(f'<circle cx="{x:g}" cy="{y:g}" r="12" fill="#ffffff" stroke="{LINE}"/>')
    canvas.path((x - 7, y), (x + 7, y), has_head=False)
    canvas.path((x, y - 7), (x, y + 7), has_head=False)
    sign = -1 if side == "encoder" else 1
    centre = x + sign * 92
    canvas.elements.append(f'<circle cx="{centre:g}" cy="{y:g}" r="19" fill="#ffffff" stroke="{LINE}"/>')
    canvas.elements.append(
        f'<path class="line" d="M{centre - 14:g} {y:g}q7 -18 14 0t14 0"/>'
        if positions == "sinusoids"
        else f'<path class="line" d="M{centre - 10:g} {y - 5:g}h20m-20 5h20m-20 5h20"/>'
    )
    canvas.path((centre - sign * 19, y), (x + sign * 12, y))
    canvas.note(side, y, ("Positional Encoding:", positions))


def _sublayer(canvas: _Canvas, side: Side, x: float, y: float, sublayer: Sublayer, state: str) -> float:
    """Draw a sublayer with residual connection and norm, upwards from ``y``; return its upper end."""
    branch = y - 34
    if sublayer.norm == "before":
        canvas.path((x, y), (x, branch - 14))
        y = branch - 14 - LOW
        canvas.box(x, y, LOW, FILLS["norm"], ("Norm",))
    bottom = branch - 30 if sublayer.norm == "after" else y - 32
    top = bottom - TALL
    _enter(canvas, x, y, bottom, sublayer)
    title = sublayer.title.removesuffix(" Attention")
    lines = (title, "Attention") if title != sublayer.title else tuple(sublayer.title.split(" ", 1))
    canvas.box(x, top, TALL, FILLS[sublayer.kind], lines)
    canvas.note(side, top + TALL / 2, (*sublayer.weights, *([sublayer.heads] if sublayer.heads else [])))
    end = top - 16 - LOW
    canvas.path((x, top), (x, end + LOW))
    canvas.box(x, end, LOW, FILLS["norm"], ("Add & Norm" if sublayer.norm == "after" else "Add",))
    canvas.note(side, end + LOW / 2, (f"output {state}",))
    sign = -1 if side == "encoder" else 1
    skip, edge = x + sign * SKIP, x + sign * BOX / 2
    canvas.path((x, branch), (skip, branch), (skip, end + LOW / 2), (edge, end + LOW / 2))
    return end


def _enter(canvas: _Canvas, x: float, y: float, bottom: float, sublayer: Sublayer) -> None:
    """Draw the inputs of a box: one for feed-forward, three for self-attention, the query for cross-attention."""
    if sublayer.is_cross:
        canvas.path((x, y), (x, bottom + 22), (x + ASIDE, bottom + 22), (x + ASIDE, bottom))
        canvas.text(x + ASIDE + 7, bottom + 14, "Q", kind="note")
        return
    canvas.path((x, y), (x, bottom))
    if sublayer.kind == "attention":
        for aside in (-ASIDE, ASIDE):
            canvas.path((x, bottom + 16), (x + aside, bottom + 16), (x + aside, bottom))


def _memory(canvas: _Canvas, encoder: _Top, decoder: _Top, d_model: int) -> None:
    """Draw keys and values from the top of the encoder to the cross-attention."""
    if decoder.cross is None:
        return
    x, cross, enter = CENTRES["encoder"], CENTRES["decoder"], decoder.cross + 12
    above, between = encoder.y - 40, (x + cross) / 2
    canvas.path((x, encoder.y), (x, above), (between, above), (between, enter), (cross, enter), (cross, decoder.cross))
    canvas.path((cross - 2 * ASIDE, enter), (cross - ASIDE, enter), (cross - ASIDE, decoder.cross))
    canvas.text(cross - BOX / 2 - 32, enter - 5, "K, V", kind="note")
    canvas.text(x + 10, above - 7, f"(S, {d_model})", kind="shape")


def _output(canvas: _Canvas, y: float, architecture: Architecture) -> float:
    """Draw linear layer, softmax and probabilities above the decoder; return the upper end of the figure."""
    x, height = CENTRES["decoder"], 34
    linear = y - 36 - GAP - height
    softmax = linear - GAP - height
    canvas.path((x, y), (x, linear + height))
    canvas.text(x + 10, y - 30, f"(T, {architecture.d_model})", kind="shape")
    canvas.box(x, linear, height, FILLS["linear"], ("Linear",))
    own = "tied to the embedding" if "linear" in architecture.tied else "separate matrix"
    canvas.note("decoder", linear + height / 2, (architecture.output, own))
    canvas.path((x, linear), (x, softmax + height))
    canvas.box(x, softmax, height, FILLS["softmax"], ("Softmax",))
    canvas.path((x, softmax), (x, softmax - 24))
    n_tokens = architecture.output.strip("()").split(", ")[0]
    canvas.text(x, softmax - 46, "Output Probabilities", anchor="middle")
    canvas.text(x, softmax - 30, f"(T, {n_tokens})", kind="shape", anchor="middle")
    return softmax - 60


def _tied_embeddings(canvas: _Canvas, architecture: Architecture) -> None:
    if {"input", "output"} <= set(architecture.tied):
        y, left, right = -GAP - TALL / 2, CENTRES["encoder"] + BOX / 2, CENTRES["decoder"] - BOX / 2
        canvas.path((left, y), (right, y), has_head=False, kind="tied")
        canvas.text((left + right) / 2, y - 8, "one matrix", kind="note", anchor="middle")
