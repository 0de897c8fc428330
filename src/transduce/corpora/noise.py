"""Kinds of noise for generated images, each a function from a grey image to another one.

Shapes: I rows of an image, J columns of it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from transduce.config import Noise
from transduce.media.images import Pixels
from transduce.media.libraries import library

__all__ = ["NOISES", "noisy"]

Floats = NDArray[np.float32]


def noisy(grey_IJ: Pixels, kind: Noise, random: np.random.Generator) -> Pixels:
    """Return an image with noise of a kind; the result is a function of the arguments.

    >>> page = np.full((8, 9), 255, np.uint8)
    >>> noisy(page, "speckle", np.random.default_rng(1)).shape
    (8, 9)
    """
    changed = NOISES[kind](grey_IJ.astype(np.float32), random)
    return np.clip(np.rint(changed), 0, 255).astype(np.uint8)


def _blurred(x_IJ: Floats, random: np.random.Generator) -> Floats:
    """Return the image out of focus: the mean over a window, once or twice."""
    radius = int(random.integers(1, 3))
    for _ in range(int(random.integers(1, 3))):
        padded = np.pad(x_IJ, radius, mode="edge")
        window = range(2 * radius + 1)
        rows = np.mean([padded[i : i + x_IJ.shape[0]] for i in window], axis=0)
        x_IJ = np.mean([rows[:, j : j + x_IJ.shape[1]] for j in window], axis=0, dtype=np.float32)
    return x_IJ


def _grainy(x_IJ: Floats, random: np.random.Generator) -> Floats:
    """Add independent normal noise to each pixel."""
    return x_IJ + random.normal(0, random.uniform(8, 40), x_IJ.shape).astype(np.float32)


def _tilted(x_IJ: Floats, random: np.random.Generator) -> Floats:
    """Rotate by up to two degrees."""
    image = library("PIL.Image", needed_for="rendering text").fromarray(x_IJ.astype(np.uint8))
    angle, paper = float(random.uniform(-2, 2)), float(np.median(x_IJ))
    return np.asarray(image.rotate(angle, resample=2, fillcolor=int(paper)), np.float32)


def _faint(x_IJ: Floats, random: np.random.Generator) -> Floats:
    """Lower the contrast."""
    paper = float(np.median(x_IJ))
    return np.asarray(paper + (x_IJ - paper) * random.uniform(0.25, 0.6), np.float32)


def _speckled(x_IJ: Floats, random: np.random.Generator) -> Floats:
    """Make some pixels black and some white."""
    share, draws = random.uniform(0.01, 0.06), random.random(x_IJ.shape)
    return np.where(draws < share / 2, 0, np.where(draws < share, 255, x_IJ)).astype(np.float32)


def _shaded(x_IJ: Floats, random: np.random.Generator) -> Floats:
    """Darken the image towards one of its sides."""
    darkest = random.uniform(0.3, 0.7)
    along = np.linspace(darkest, 1, x_IJ.shape[1])
    return np.asarray(x_IJ * (along if random.random() < 0.5 else along[::-1]), np.float32)


def _pixelated(x_IJ: Floats, random: np.random.Generator) -> Floats:
    """Scale down and up again, and compress as JPEG of a low quality."""
    image_module = library("PIL.Image", needed_for="rendering text")
    image, factor = image_module.fromarray(x_IJ.astype(np.uint8)), random.uniform(1.4, 2.2)
    small = image.resize((max(1, int(image.width / factor)), max(1, int(image.height / factor))), 2)
    buffer = io.BytesIO()
    small.resize(image.size, 0).save(buffer, "jpeg", quality=int(random.integers(15, 45)))
    with image_module.open(buffer) as read:
        return np.asarray(read.convert("L"), np.float32)


def _ruled(x_IJ: Floats, random: np.random.Generator) -> Floats:
    """Draw one or two thin lines over the text, as on ruled paper."""
    x_IJ = x_IJ.copy()
    for _ in range(int(random.integers(1, 3))):
        row, grey = int(random.integers(0, len(x_IJ))), random.uniform(60, 160)
        x_IJ[row : row + int(random.integers(1, 3))] = np.minimum(x_IJ[row : row + 1], grey)
    return x_IJ


NOISES: Mapping[Noise, Callable[[Floats, np.random.Generator], Floats]] = {
    "blur": _blurred,
    "grain": _grainy,
    "tilt": _tilted,
    "faint": _faint,
    "speckle": _speckled,
    "shadow": _shaded,
    "pixelated": _pixelated,
    "ruled": _ruled,
}
