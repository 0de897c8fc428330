"""Static drawings of attention: what is drawn, and where."""

from __future__ import annotations

import re
from importlib import resources
from xml.etree import ElementTree

import numpy as np
import pytest

from said import naming
from transduce.errors import ShapeError
from transduce.view import HeadLines, LinePanel, attention_grid, attention_lines
from transduce.view.svg import HEAD_COLOURS

SVG = "{http://www.w3.org/2000/svg}"
WORDS = ("the", "<dog> & \x07", "\u05e9\u05dc\u05d5\u05dd", "\u65e5\u672c\u8a9e", "Donaudampfschifffahrt", "</s>")


def random_weights(n_heads: int, n_queries: int, n_keys: int) -> np.ndarray:
    weights = np.random.default_rng(3).random((n_heads, n_queries, n_keys)) ** 4
    return weights / weights.sum(axis=-1, keepdims=True)


def panel(weights_HQK: np.ndarray, *, query: int | None = None) -> LinePanel:
    heads = tuple(HeadLines(f"head {n + 1}", n, weights) for n, weights in enumerate(weights_HQK))
    return LinePanel(("A title", "and more"), WORDS, WORDS, heads, query=query)


def parsed(drawing: str) -> ElementTree.Element:
    root = ElementTree.fromstring(drawing)
    assert root.tag == f"{SVG}svg"
    return root


def ends(path: ElementTree.Element) -> tuple[tuple[float, float], tuple[float, float]]:
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.attrib["d"])]
    return (numbers[0], numbers[1]), (numbers[-2], numbers[-1])


def groups_of_lines(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [group for group in root.findall(f"{SVG}g") if "stroke" in group.attrib]


def test_every_weight_that_can_be_seen_is_one_line_of_its_strength() -> None:
    weights = random_weights(3, 6, 6)
    groups = groups_of_lines(parsed(attention_lines([panel(weights)], title="t")))
    assert [group.attrib["stroke"] for group in groups] == list(HEAD_COLOURS[:3])
    for group, of_head in zip(groups, weights, strict=True):
        seen = [float(weight) for weight in of_head.flatten() if weight >= 0.04]
        assert [float(path.attrib["opacity"]) for path in group] == pytest.approx(
            [weight**0.7 for weight in seen], abs=0.005
        )
        assert [float(path.attrib["stroke-width"]) for path in group] == pytest.approx(
            [1 + 2.5 * weight for weight in seen], abs=0.005
        )


def test_a_line_goes_from_the_word_that_looks_to_the_word_it_looks_at() -> None:
    weights = np.zeros((1, 6, 6))
    weights[0, range(6), [3, 0, 5, 1, 2, 4]] = 1
    root = parsed(attention_lines([panel(weights)], title="t"))
    (group,) = groups_of_lines(root)
    left = [text for text in root.findall(f"{SVG}text") if text.get("text-anchor") == "end"]
    right = root.findall(f"{SVG}text")[-6:]
    assert len(left) == 6
    for path, row, column in zip(group, range(6), [3, 0, 5, 1, 2, 4], strict=True):
        (x1, y1), (x2, y2) = ends(path)
        assert y1 == pytest.approx(float(left[row].attrib["y"]) - 5, abs=0.06)
        assert y2 == pytest.approx(float(right[column].attrib["y"]) - 5, abs=0.06)
        assert float(left[row].attrib["x"]) < x1 < x2 < float(right[column].attrib["x"])


def test_a_row_that_stands_alone_has_its_lines_and_a_strip_with_a_cell_for_each_head() -> None:
    weights = random_weights(2, 6, 6)
    root = parsed(attention_lines([panel(weights, query=4)], title="t"))
    for group, of_head in zip(groups_of_lines(root), weights, strict=True):
        assert len(group) == (of_head[4] >= 0.04).sum()
        assert len({ends(path)[0] for path in group}) == 1
    strips = [group for group in root.findall(f"{SVG}g") if "fill" in group.attrib and "stroke" not in group.attrib]
    for strip, of_head in zip(strips, weights, strict=True):
        shown = of_head[4][of_head[4] >= 0.01]
        assert [float(cell.attrib["opacity"]) for cell in strip] == pytest.approx(shown**0.7, abs=0.005)
    bold = [text.text for text in root.findall(f"{SVG}text") if text.get("font-weight") == "600"]
    strong = [WORDS[key] for key in np.flatnonzero(weights[:, 4].max(axis=0) >= 0.25)]
    assert len(bold) == 1 + 1 + len(strong)  # title, the word itself, those it looks at


def test_a_single_head_has_bars_as_long_as_its_weights() -> None:
    weights = np.zeros((1, 6, 6))
    weights[0, 2] = [0.5, 0.25, 0.25, 0, 0, 0]
    root = parsed(attention_lines([panel(weights, query=2)], title="t"))
    (strip,) = [group for group in root.findall(f"{SVG}g") if "fill" in group.attrib and "stroke" not in group.attrib]
    widths = [float(bar.attrib["width"]) for bar in strip]
    assert widths == pytest.approx([widths[0], widths[0] / 2, widths[0] / 2])
    assert {bar.attrib["opacity"] for bar in strip} == {"1.00"}


def test_any_text_is_text_and_what_xml_cannot_hold_is_replaced() -> None:
    drawing = attention_lines([panel(random_weights(1, 6, 6))], title='<title> & "more" \x00')
    root = parsed(drawing)
    texts = [text.text for text in root.findall(f"{SVG}text")]
    assert texts[2:8] == ["the", "<dog> & \ufffd", WORDS[2], WORDS[3], "Donaudampfschifff\u2026", "</s>"]
    assert root.findtext(f"{SVG}title") == '<title> & "more" \ufffd'


def test_all_of_a_drawing_is_inside_of_it_and_panels_share_their_rows() -> None:
    many = panel(random_weights(16, 6, 6), query=0)
    drawing = attention_lines([panel(random_weights(1, 6, 6)), many], title="t")
    assert drawing == attention_lines([panel(random_weights(1, 6, 6)), many], title="t")
    root = parsed(drawing)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for text in root.findall(f"{SVG}text"):
        n_wide = len(text.text or "") * (14 if text.text == WORDS[3] else 7)
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        before, after = (n_wide, 0) if text.get("text-anchor") == "end" else (0, n_wide)
        assert x - before >= 0
        assert x + after <= width
        assert 0 < y < height
    rows = [text.attrib["y"] for text in root.findall(f"{SVG}text") if text.text == "the"]
    assert len(rows) == 4
    assert len(set(rows)) == 1
    dashes = [group.get("stroke-dasharray") for group in groups_of_lines(root)][1:]
    assert dashes == [None] * 8 + ["6 3"] * 8
    assert sum(text.text == "head 16" for text in root.findall(f"{SVG}text")) == 1


def test_colours_are_those_of_the_attention_page() -> None:
    style = (resources.files("transduce.view") / "attention_page.css").read_text(encoding="utf-8")
    assert tuple(re.findall(r"--head-\d: (#[0-9a-f]{6})", style)[: len(HEAD_COLOURS)]) == HEAD_COLOURS


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ShapeError, match=naming("'head 1'", "(6, 5)", "(6, 6)")):
        panel(random_weights(1, 6, 5))
    with pytest.raises(ShapeError, match=naming(0)):
        LinePanel((), WORDS, WORDS, ())
    with pytest.raises(ShapeError, match=naming("query", 0, 5, 6)):
        panel(random_weights(1, 6, 6), query=6)
    with pytest.raises(ShapeError, match="panel"):
        attention_lines([], title="t")
    with pytest.raises(ShapeError, match=naming("layers", "heads", "queries", "keys", "(2, 0, 3, 3)")):
        attention_grid(np.zeros((2, 0, 3, 3)), title="t")


def test_a_grid_has_a_map_for_each_head_with_its_weights_where_they_are() -> None:
    weights = np.zeros((2, 10, 4, 5))
    weights[1, 9, 3, 2] = 1.0
    weights[0, 8, 1, 4] = 0.5
    weights[0, 0, 0, 0] = 0.001  # too weak to be seen
    root = parsed(attention_grid(weights, title="t", marked=[(1, 9)]))
    maps = root.findall(f"{SVG}g")
    assert len(maps) == 20
    squares = {n: [path.attrib["d"] for path in each.findall(f"{SVG}path")] for n, each in enumerate(maps)}
    assert {n: paths for n, paths in squares.items() if paths} == {19: ["M2 3h1v1h-1z"], 8: ["M4 1h1v1h-1z"]}
    assert float(maps[19][0].attrib["opacity"]) == 1
    assert float(maps[8][0].attrib["opacity"]) == pytest.approx(0.5**0.7, abs=0.5 / 12)
    assert maps[8].attrib["fill"] == maps[0].attrib["fill"] != maps[1].attrib["fill"]
    frames = [each.find(f"{SVG}rect") for each in maps]
    assert [n for n, frame in enumerate(frames) if frame is not None and frame.attrib["stroke-width"] == "2.5"] == [19]
    labels = [text.text for text in root.findall(f"{SVG}text")]
    assert labels == [*(f"head {n}" for n in range(1, 11)), "layer 1", "layer 2"]


def test_maps_of_long_sentences_stay_small() -> None:
    root = parsed(attention_grid(np.full((1, 16, 60, 60), 1 / 60), title="t"))
    assert float(root.attrib["width"]) < 16 * 110 + 100
