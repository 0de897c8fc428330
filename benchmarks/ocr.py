"""Character error rates of a model of images beside tesseract's, on the test images of a recipe.

    python benchmarks/ocr.py MODEL --recipe ocr-lines [--lines 1000] [--languages eng+deu] [--json]
        [--picture FILE.svg]

The images are generated from the recipe, as in training: fonts, lines and kinds of noise that no training line has.
tesseract (``apt install tesseract-ocr tesseract-ocr-deu``) reads the same images as one line each (``--psm 7``) at
three scales; of each part, clean and noisy, the scale with its fewest errors counts. On rows of digits it may write
digits only. Without MODEL, tesseract alone is measured. The picture shows the first lines with what each system reads.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from machine import machine
from needed import need
from PIL import Image

from transduce import Reader
from transduce.corpora.ocr_digits import OcrDigits
from transduce.corpora.ocr_lines import OcrLines
from transduce.metrics import character_error_rate, error_rates
from transduce.recipes import read_recipe

SCALES = (1, 2, 3)
N_LINES = 1000
N_SHOWN = 8


@dataclass(frozen=True)
class TestLine:
    """An image of the test set with its text."""

    part: str  # "clean", "noisy" or "row"
    text: str
    pixels: np.ndarray


def main() -> None:
    """Read the test images with each system and print the error rates."""
    parser = argparse.ArgumentParser(description="Compare a reader with tesseract.")
    parser.add_argument("model", type=Path, nargs="?", help="a model folder of image-to-text")
    parser.add_argument("--recipe", type=Path, required=True, help="the recipe that generates the images")
    parser.add_argument("--lines", type=int, default=N_LINES, help="read only the first of them")
    parser.add_argument("--languages", default="eng+deu", help="tesseract's models")
    parser.add_argument("--beam", type=int, default=None)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--picture", type=Path, help="draw the first lines with what is read; needs transduce-paper")
    arguments = parser.parse_args()
    if arguments.picture is not None:
        need(parser, "transduce_paper", how="pip install ./paper")
    lines = test_lines(arguments.recipe, arguments.lines)
    systems: dict[str, dict[str, Any]] = {}
    readings: dict[str, Sequence[str]] = {}
    if arguments.model is not None:
        start = time.perf_counter()
        found = Reader.load(arguments.model).read([line.pixels for line in lines], beam_size=arguments.beam)
        systems["transduce"] = scored(found, lines, time.perf_counter() - start)
        readings["transduce"] = found
    if shutil.which("tesseract") is None:
        print("tesseract is not installed: apt install tesseract-ocr tesseract-ocr-deu", file=sys.stderr)
    else:
        digits = all(line.text.isdigit() for line in lines)
        start = time.perf_counter()
        by_scale = {scale: tesseract(lines, scale, arguments.languages, digits_only=digits) for scale in SCALES}
        elapsed_s = (time.perf_counter() - start) / len(SCALES)
        readings["tesseract"], scales = best_of_scales(by_scale, lines)
        systems["tesseract"] = {**scored(readings["tesseract"], lines, elapsed_s), "scales": scales}
    if arguments.picture is not None:
        draw(lines[:N_SHOWN], readings, arguments.picture)
    result = {"recipe": arguments.recipe.name, "lines": len(lines), "systems": systems, "machine": machine()}
    print(json.dumps(result) if arguments.json else as_text(result))


def test_lines(recipe: Path, n_lines: int) -> list[TestLine]:
    """Return the first test images of a recipe."""
    data = read_recipe(recipe).data
    corpora = {"ocr-lines": OcrLines, "ocr-digits": OcrDigits}
    (name,) = data.weights
    if name not in corpora:
        sys.exit(f"{recipe}: corpus = {name!r} has no generated images")
    images = corpora[name](data).made("test")
    return [TestLine(line.partition("/")[0], text, pixels) for line, text, pixels in islice(images, n_lines)]


def tesseract(lines: Sequence[TestLine], scale: int, languages: str, *, digits_only: bool) -> list[str]:
    """Return what tesseract reads in each image, enlarged by a factor."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number:05}.png" for number in range(len(lines))]
        for path, line in zip(paths, lines, strict=True):
            image = Image.fromarray(line.pixels)
            image.resize((image.width * scale, image.height * scale), Image.Resampling.BICUBIC).save(path)
        options = ["-c", "tessedit_char_whitelist=0123456789"] if digits_only else []
        return read_by_tesseract(paths, ["--psm", "7", "-l", languages, *options])


def read_by_tesseract(paths: Sequence[Path], options: Sequence[str]) -> list[str]:
    """Return what is read in each file; where tesseract ends with an error, it is called for half of the files each.

    An error on a single file counts as reading nothing.
    """
    listed = paths[0].with_suffix(".txt")
    listed.write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
    command = ["tesseract", str(listed), "stdout", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        pages = done.stdout.split("\f")[: len(paths)]
        return [" ".join(page.split()) for page in pages] + [""] * (len(paths) - len(pages))
    if len(paths) == 1:
        print(f"tesseract failed on {paths[0].name}: {done.stderr[-500:]}", file=sys.stderr)
        return [""]
    half = len(paths) // 2
    return read_by_tesseract(paths[:half], options) + read_by_tesseract(paths[half:], options)


def best_of_scales(by_scale: dict[int, list[str]], lines: Sequence[TestLine]) -> tuple[list[str], dict[str, int]]:
    """Return what is read at the scale with the fewest errors of each part, and these scales."""
    best: dict[str, int] = {}
    for part in dict.fromkeys(line.part for line in lines):
        rows = [row for row, line in enumerate(lines) if line.part == part]
        texts = [lines[row].text for row in rows]
        rates = {
            scale: character_error_rate([found[row] for row in rows], texts).score for scale, found in by_scale.items()
        }
        best[part] = min(rates, key=rates.__getitem__)
    return [by_scale[best[line.part]][number] for number, line in enumerate(lines)], best


def draw(lines: Sequence[TestLine], readings: dict[str, Sequence[str]], path: Path) -> None:
    """Draw each line with its text and what each system reads. Needs transduce-paper."""
    from transduce_paper.drawing import new_panels, save_svg

    figure, panels = new_panels(9.0, 0.75 * len(lines), n_rows=len(lines), n_columns=2)
    for row, line in enumerate(lines):
        image, said = panels[2 * row : 2 * row + 2]
        image.imshow(line.pixels, cmap="gray", vmin=0, vmax=255)
        texts = [("text", line.text), *((system, found[row]) for system, found in readings.items())]
        for place, (name, text) in enumerate(texts):
            said.text(0, 0.9 - 0.4 * place, f"{name}: {text}", fontsize=8, va="center", parse_math=False)
        image.set_axis_off()
        said.set_axis_off()
    save_svg(figure, path)


def scored(found: Sequence[str], lines: Sequence[TestLine], elapsed_s: float) -> dict[str, Any]:
    """Return the error rates of all lines and of each part, with the lines read in a second."""
    rates = error_rates(found, [line.text for line in lines], parts=[line.part for line in lines])
    return {**rates.as_json(), "lines_per_s": len(lines) / elapsed_s}


def as_text(result: dict[str, Any]) -> str:
    """Return a table of Markdown: a row for each system and part."""
    notes = []
    rows = [
        "| system | part | lines | character error rate | word error rate | exact |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for system, scores in result["systems"].items():
        parts = [key.removesuffix("_lines") for key in scores if key.endswith("_lines")]
        for part in ["", *parts]:
            prefix = f"{part}_" if part else ""
            values = [scores[f"{prefix}{name}"]["score"] for name in ("character_error_rate", "word_error_rate")]
            rows.append(
                f"| {system} | {part or 'all'} | {scores[f'{prefix}lines']:,} | {values[0]:.2f} % | {values[1]:.2f} % |"
                f" {scores[f'{prefix}exact']:.1f} % |"
            )
        scales = f", scales {scores['scales']}" if "scales" in scores else ""
        notes.append(f"{system}: {scores['lines_per_s']:.1f} lines a second{scales}")
    return "\n".join([*rows, "", *notes])


if __name__ == "__main__":
    main()
