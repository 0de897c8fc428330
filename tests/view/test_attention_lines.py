"""Static drawings of attention: elements and their coordinates."""

from __future__ import annotations

import re
from importlib import resources
from itertools import combinations
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


def panel(weights_HTS: np.ndarray, *, query: int | None = None) -> LinePanel:
    heads = tuple(HeadLines(f"head {n + 1}", n, weights) for n, weights in enumerate(weights_HTS))
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


def drawn_weights(row: np.ndarray) -> list[float]:
    """Return the three greatest weights of a query that are at least 0.04, in key order."""
    threshold = max(0.04, sorted(row.tolist())[-3])
    return [weight for weight in row.tolist() if weight >= threshold]


def test_all_queries_have_lines_for_their_three_greatest_weights() -> None:
    weights = random_weights(3, 6, 6)
    groups = groups_of_lines(parsed(attention_lines([panel(weights)], title="t")))
    assert [group.attrib["stroke"] for group in groups] == list(HEAD_COLOURS[:3])
    for group, of_head in zip(groups, weights, strict=True):
        expected = [weight for row in of_head for weight in drawn_weights(row)]
        assert len(expected) < (of_head >= 0.04).sum()
        assert [float(path.attrib["opacity"]) for path in group] == pytest.approx(
            [weight**0.7 for weight in expected], abs=0.005
        )
        assert [float(path.attrib["stroke-width"]) for path in group] == pytest.approx(
            [1 + 2.5 * weight for weight in expected], abs=0.005
        )


def test_lines_run_from_query_to_key() -> None:
    weights = np.zeros((1, 6, 6))
    weights[0, range(6), [3, 0, 5, 1, 2, 4]] = 1
    root = parsed(attention_lines([panel(weights)], title="t"))
    (group,) = groups_of_lines(root)
    left = [text for text in root.findall(f"{SVG}text") if text.get("text-anchor") == "end"]
    header, *left = left
    right = root.findall(f"{SVG}text")[-6:]
    assert header.text == "query"
    assert len(left) == 6
    for path, row, column in zip(group, range(6), [3, 0, 5, 1, 2, 4], strict=True):
        (x1, y1), (x2, y2) = ends(path)
        assert y1 == pytest.approx(float(left[row].attrib["y"]) - 5, abs=0.06)
        assert y2 == pytest.approx(float(right[column].attrib["y"]) - 5, abs=0.06)
        assert float(left[row].attrib["x"]) < x1 < x2 < float(right[column].attrib["x"])


def test_a_single_query_has_lines_and_a_strip_with_one_cell_per_head() -> None:
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
    assert len(bold) == 1 + 1 + len(strong)  # title, query, keys with strong weights


def test_a_single_head_has_bars_as_long_as_its_weights() -> None:
    weights = np.zeros((1, 6, 6))
    weights[0, 2] = [0.5, 0.25, 0.25, 0, 0, 0]
    root = parsed(attention_lines([panel(weights, query=2)], title="t"))
    (strip,) = [group for group in root.findall(f"{SVG}g") if "fill" in group.attrib and "stroke" not in group.attrib]
    widths = [float(bar.attrib["width"]) for bar in strip]
    assert widths == pytest.approx([widths[0], widths[0] / 2, widths[0] / 2])
    assert {bar.attrib["opacity"] for bar in strip} == {"1.00"}


def test_text_is_escaped_and_invalid_xml_characters_are_replaced() -> None:
    drawing = attention_lines([panel(random_weights(1, 6, 6))], title='<title> & "more" \x00')
    root = parsed(drawing)
    texts = [text.text for text in root.findall(f"{SVG}text")]
    assert texts[2:10] == [
        "query",
        "key",
        "the",
        "<dog> & \ufffd",
        WORDS[2],
        WORDS[3],
        "Donaudampfschifff\u2026",
        "</s>",
    ]
    assert root.findtext(f"{SVG}title") == '<title> & "more" \ufffd'


def test_elements_lie_within_the_drawing_and_panels_share_rows() -> None:
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


def test_strip_cells_have_head_marks_above() -> None:
    weights = random_weights(3, 6, 6)
    heads = tuple(HeadLines(f"head {n + 1}", n, of_head, mark=f"#{n + 1}") for n, of_head in enumerate(weights))
    root = parsed(attention_lines([LinePanel((), WORDS, WORDS, heads, query=1)], title="t", note="What lines mean."))
    texts = {text.text: text for text in root.findall(f"{SVG}text")}
    strips = [group for group in root.findall(f"{SVG}g") if "fill" in group.attrib and "stroke" not in group.attrib]
    for n, strip in enumerate(strips):
        cell, mark = strip[0].attrib, texts[f"#{n + 1}"].attrib
        assert float(mark["x"]) == pytest.approx(float(cell["x"]) + float(cell["width"]) / 2)
        assert float(mark["y"]) < float(texts["the"].attrib["y"]) - 12
    note = texts["What lines mean."].attrib
    assert float(texts["</s>"].attrib["y"]) < float(note["y"]) < float(root.attrib["height"])


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def oklab(rgb: np.ndarray) -> np.ndarray:
    """Convert linear RGB to Oklab (Ottosson, 2020), where Euclidean distance approximates perceived difference."""
    to_lms = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    to_lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.cbrt(np.clip(rgb @ np.array(to_lms).T, 0, None)) @ np.array(to_lab).T


# Colour vision deficiencies of full severity in linear RGB, Machado et al. (2009)
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900],
    ],
}  # fmt: skip
OKABE_ITO = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#000000")


def min_difference(colours: tuple[str, ...], deficiency: str) -> float:
    rgb = np.array([linear(colour) for colour in colours]) @ np.array(DEFICIENCIES[deficiency]).T
    lab = oklab(np.clip(rgb, 0, 1))
    return float(min(np.linalg.norm(lab[one] - lab[two]) for one, two in combinations(range(len(colours)), 2)))


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_head_colours_differ_under_colour_vision_deficiencies(deficiency: str) -> None:
    style = (resources.files("transduce.view") / "attention_page.css").read_text(encoding="utf-8")
    colours = tuple(re.findall(r"--head-\d: (#[0-9a-f]{6})", style))
    light, dark = colours[:8], colours[8:]
    assert len(light) == len(dark) == len(HEAD_COLOURS)
    hardest = min(min_difference(OKABE_ITO, each) for each in DEFICIENCIES)
    assert min(min_difference(light, deficiency), min_difference(dark, deficiency)) > max(0.13, 1.5 * hardest)


def test_colours_match_the_attention_page() -> None:
    style = (resources.files("transduce.view") / "attention_page.css").read_text(encoding="utf-8")
    assert tuple(re.findall(r"--head-\d: (#[0-9a-f]{6})", style)[: len(HEAD_COLOURS)]) == HEAD_COLOURS


def test_invalid_panels_are_refused() -> None:
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


def test_grid_has_one_map_per_head_with_weights_in_place() -> None:
    weights = np.zeros((2, 10, 4, 5))
    weights[1, 9, 3, 2] = 1.0
    weights[0, 8, 1, 4] = 0.5
    weights[0, 0, 0, 0] = 0.001  # too weak to be drawn
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
    assert labels[:-1] == [*(f"head {n}" for n in range(1, 11)), "layer 1", "layer 2"]
    assert labels[-1] is not None
    assert re.search(r"\brows\b.*\bqueries\b.*\bcolumns\b.*\bkeys\b", labels[-1].lower())


def test_maps_of_long_sentences_stay_small() -> None:
    root = parsed(attention_grid(np.full((1, 16, 60, 60), 1 / 60), title="t"))
    assert float(root.attrib["width"]) < 16 * 110 + 100
