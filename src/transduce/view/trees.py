"""Tree display: indented text and SVG drawings."""

from __future__ import annotations

from dataclasses import dataclass

from transduce.trees import Tree, unescaped
from transduce.view.svg import xml_text

__all__ = ["draw_tree", "indented"]

MAX_LINE_WIDTH = 100  # a subtree that fits is printed on one line

LEVEL, LINE_HEIGHT, MARGIN = 56.0, 22.0, 16.0  # pixels
CHARACTER, GAP = 9.0, 18.0  # maximum width of a letter, space between words


def indented(tree: Tree) -> str:
    """Return a tree on several lines, indented by two spaces per level; short subtrees stay on one line.

    >>> from transduce.trees import parse_tree
    >>> print(indented(parse_tree("(TOP (S (NP (DT the) (NN dog)) (VP (VBZ sleeps))))")))
    (TOP (S (NP (DT the) (NN dog)) (VP (VBZ sleeps))))
    """
    lines: list[str] = []
    stack: list[tuple[Tree, int, str]] = [(tree, 0, "")]  # node, depth, closing brackets that follow it
    while stack:
        node, depth, closing = stack.pop()
        text, indent = f"{node}{closing}", "  " * depth
        if node.word is not None or len(indent) + len(text) <= MAX_LINE_WIDTH:
            lines.append(indent + text)
            continue
        lines.append(f"{indent}({node.label}")
        last = len(node.children) - 1
        children = [(child, depth + 1, f"){closing}" if n == last else "") for n, child in enumerate(node.children)]
        stack.extend(reversed(children))
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _LaidOutNode:
    label: str
    x: float
    depth: int
    children: tuple[int, ...]  # indices into the list of all nodes
    word: str | None


def draw_tree(tree: Tree) -> str:
    """Draw a tree as SVG: words in a row at the bottom, each label centred above its children."""
    nodes = _laid_out(tree)
    depth = max(node.depth for node in nodes)
    width = max(node.x + _width(node) / 2 for node in nodes) + MARGIN
    word_y = MARGIN + depth * LEVEL + 2 * LINE_HEIGHT
    parts = []
    for node in nodes:
        y = _y(node)
        for child in node.children:
            below = nodes[child]
            parts.append(_line(node.x, y + 6, below.x, _y(below) - 14))
        parts.append(_text(node.x, y, node.label, "label"))
        if node.word is not None:
            parts.append(_line(node.x, y + 6, node.x, word_y - 15))
            parts.append(_text(node.x, word_y, node.word, "word"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {word_y + MARGIN:.0f}" '
        f'width="{width:.0f}" height="{word_y + MARGIN:.0f}" role="img">\n'
        "<style>text{font:15px system-ui,sans-serif;text-anchor:middle;fill:#1c2733}.label{fill:#0b5cad}"
        "line{stroke:#9aa7b4;stroke-width:1.2}"
        "@media(prefers-color-scheme:dark){text{fill:#e8edf2}.label{fill:#7fb7f0}line{stroke:#66727e}}</style>\n"
        f"<title>{xml_text(' '.join(map(unescaped, tree.words())))}</title>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _laid_out(tree: Tree) -> list[_LaidOutNode]:
    """Return all nodes in post-order, with the x coordinate of each one's centre."""
    placed: list[_LaidOutNode] = []
    done: list[list[int]] = [[]]
    stack: list[tuple[Tree, int, bool]] = [(tree, 0, False)]
    right = MARGIN  # right end of the words placed so far
    while stack:
        node, depth, is_visited = stack.pop()
        if node.word is not None:
            word = unescaped(node.word)
            width = CHARACTER * max(len(word), len(node.label))
            placed.append(_LaidOutNode(node.label, right + width / 2, depth, (), word))
            right += width + GAP
            done[-1].append(len(placed) - 1)
        elif is_visited:
            children = tuple(done.pop())
            middle = (placed[children[0]].x + placed[children[-1]].x) / 2
            placed.append(_LaidOutNode(node.label, middle, depth, children, None))
            done[-1].append(len(placed) - 1)
        else:
            done.append([])
            stack.append((node, depth, True))
            stack.extend((child, depth + 1, False) for child in reversed(node.children))
    return placed


def _width(node: _LaidOutNode) -> float:
    return CHARACTER * max(len(node.label), len(node.word or ""))


def _y(node: _LaidOutNode) -> float:
    return MARGIN + node.depth * LEVEL + LINE_HEIGHT / 2


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{xml_text(text)}</text>'
