"""The generated corpus ``ocr-lines``: lines of text rendered with the fonts of this machine.

Every image is a function of the configuration: the text, the font, its size, margins and noise follow from the seed,
the split and the number of the line. Dev and test have half of their lines clean and half noisy; test has the test
fonts and the test kinds of noise, which no training line has, dev those of training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from transduce.config import ImagesData, Noise, Split
from transduce.corpora.media import GeneratedMedia
from transduce.corpora.media_lines import media_lines
from transduce.corpora.noise import noisy
from transduce.errors import DataError
from transduce.media.images import Pixels, grey_image, is_blank
from transduce.media.libraries import library

__all__ = ["OcrLines", "find_font", "font_folders", "rendered_line"]

DEV_LINES, TEST_LINES = 200, 1000  # half of them noisy
NOISY_SHARE = 0.6  # of the training lines
MIN_SIZE, MAX_SIZE = 18, 44  # of the font, in pixels
MIN_NOISY_CONTRAST = 16  # of 255: noise that leaves less is not added


class OcrLines(GeneratedMedia):
    """Rendered lines of text."""

    def __init__(self, config: ImagesData) -> None:
        """Raises DataError if a font is not installed."""
        self.config = config
        self.fonts = {
            "train": [find_font(name) for name in config.training_fonts],
            "test": [find_font(name) for name in config.test_fonts],
        }

    def texts(self, split: Split) -> Iterator[str]:
        """Yield the lines of a split."""
        n = {"train": self.config.n_pairs, "dev": DEV_LINES, "test": TEST_LINES}[split]
        languages = {"both": ("en", "de"), None: ("en",)}.get(self.config.language) or (self.config.language or "en",)
        return media_lines(split, n=n, seed=self.config.corpus_seed, languages=languages)

    def made(self, split: Split) -> Iterator[tuple[str, str, Pixels]]:
        """Yield name, text and grey image of each line of a split."""
        is_test = split == "test"
        fonts = self.fonts["test" if is_test else "train"]
        kinds = self.config.test_noise if is_test else self.config.training_noise
        for number, text in enumerate(self.texts(split)):
            random = Random(f"{split} {self.config.corpus_seed} {number}")
            is_noisy = random.random() < NOISY_SHARE if split == "train" else number % 2 == 1
            chosen = _chosen(kinds, random) if is_noisy else []
            pixels = rendered_line(text, random.choice(fonts), random, noise=chosen)
            part = "noisy" if chosen else "clean"
            yield f"{part}/{number}", text, pixels


def _chosen(kinds: Sequence[Noise], random: Random) -> list[Noise]:
    """Return one or two kinds of noise, if there are any."""
    return random.sample(kinds, k=min(len(kinds), random.randint(1, 2))) if kinds else []


def rendered_line(text: str, font: Path, random: Random, *, noise: Sequence[Noise] = ()) -> Pixels:
    """Return a line as a grey image (rows, columns): dark on light, in a size and with margins drawn at random.

    Noise that would leave it blank is left out.
    """
    size = random.randint(MIN_SIZE, MAX_SIZE)
    shape = _font(font, size)
    left, top, right, bottom = shape.getbbox(text)
    ascent, descent = shape.getmetrics()
    top, bottom = min(top, 0), max(bottom, ascent + descent)  # lines of one font have the same height
    margin = [random.randint(1, max(2, size // 3)) for _ in range(4)]
    width, height = right - left + margin[0] + margin[1], bottom - top + margin[2] + margin[3]
    paper, ink = random.randint(200, 255), random.randint(0, 80)
    image = library("PIL.Image", needed_for="rendering text").new("L", (max(width, 8), max(height, 8)), paper)
    draw = library("PIL.ImageDraw", needed_for="rendering text").Draw(image)
    draw.text((margin[0] - left, margin[2] - top), text, font=shape, fill=ink)
    pixels = grey_image(image)
    for kind in noise:
        changed = noisy(pixels, kind, np.random.default_rng(random.getrandbits(63)))
        pixels = pixels if is_blank(changed, min_contrast=MIN_NOISY_CONTRAST) else changed
    return pixels


@cache
def _font(path: Path, size: int) -> Any:
    try:
        return library("PIL.ImageFont", needed_for="rendering text").truetype(str(path), size)
    except OSError as error:
        raise DataError(f"{path} is not a font that can be read: {error}") from error


def font_folders() -> list[Path]:
    """Return the folders in which fonts are looked for."""
    return [
        Path.home() / ".fonts",
        Path.home() / ".local/share/fonts",
        Path("/usr/local/share/fonts"),
        Path("/usr/share/fonts"),
    ]


def find_font(name: str) -> Path:
    """Return the path of a font file, by its name or as a path. Raises DataError if there is none."""
    path = Path(name)
    if path.is_file():
        return path
    found = _installed_fonts().get(name)
    if found is None:
        raise DataError(
            f"there is no font {name} in {', '.join(map(str, font_folders()))}; install it (the recipe names Debian's"
            " packages), or name other fonts in data.training_fonts and data.test_fonts"
        )
    return found


@cache
def _installed_fonts() -> dict[str, Path]:
    """Return the font files of this machine by name; the first of equal names in the order of paths."""
    fonts: dict[str, Path] = {}
    for folder in font_folders():
        for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
            if path.suffix.lower() in (".ttf", ".otf"):
                fonts.setdefault(path.name, path)
    return fonts
