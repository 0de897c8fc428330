"""Scanned handwritten digits as text: a class, then 64 grey levels row by row, each a character.

The images are scikit-learn's 1,797 digits of 8 x 8 pixels with 17 grey levels, the test set of Alpaydin and Kaynak
(1998), by 13 writers. Dev and test are the end of the file, not a random part of it.

Shapes: N rows (images).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from transduce.config import DataConfig, FirstItems, Split
from transduce.corpora.plain_text import Document
from transduce.corpora.source import Source
from transduce.errors import ConfigError, DataError
from transduce.media.libraries import library

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "DIGITS", "DIGIT_CLASSES", "DIGIT_LEVELS", "DIGIT_PIXELS", "DIGIT_SIDE", "DigitText", "digit_images", "image_of",
    "line_of",
]  # fmt: skip

DIGITS = "digits"  # the name in ``data.corpus``
DIGIT_SIDE = 8  # pixels
DIGIT_PIXELS = DIGIT_SIDE * DIGIT_SIDE
DIGIT_CLASSES = "0123456789"
DIGIT_LEVELS = "abcdefghijklmnopq"  # from paper to ink, 0 to 16
N_HELD_OUT = 200  # images of dev, and of test
NAMES = {"dev": "digits 1,398 to 1,597", "test": "digits 1,598 to 1,797"}


def digit_images(split: Split) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the images of a split, (N, 8, 8) with levels 0 to 16, and their classes, (N,).

    Raises ConfigError without scikit-learn.
    """
    found = library("sklearn.datasets", needed_for="corpus = 'digits'").load_digits()
    images, classes = found.images.astype("uint8"), found.target.astype("uint8")
    end = len(images) - N_HELD_OUT
    part = {"train": slice(0, end - N_HELD_OUT), "dev": slice(end - N_HELD_OUT, end), "test": slice(end, None)}[split]
    return images[part], classes[part]


def line_of(image: NDArray[np.uint8], digit: int) -> str:
    """Return an image, (8, 8), and its class as a line of text.

    >>> import numpy as np
    >>> line_of(np.zeros((8, 8), dtype=np.uint8), 3)[:5]
    '3aaaa'
    """
    return DIGIT_CLASSES[digit] + "".join(DIGIT_LEVELS[level] for level in image.reshape(-1).tolist())


def image_of(line: str) -> NDArray[np.uint8]:
    """Return the image, (8, 8), of a line. Raises DataError unless it has a class and 64 grey levels."""
    import numpy as np

    if len(line) != 1 + DIGIT_PIXELS or line[0] not in DIGIT_CLASSES or not set(line[1:]) <= set(DIGIT_LEVELS):
        raise DataError(f"an image is a class, 0 to 9, and {DIGIT_PIXELS} grey levels, a to q, got {line[:80]!r}")
    return np.array([DIGIT_LEVELS.index(level) for level in line[1:]], dtype=np.uint8).reshape(DIGIT_SIDE, DIGIT_SIDE)


class DigitText(Source[Document]):
    """The digits as documents of one line each."""

    def __init__(self, config: DataConfig) -> None:
        """Raises ConfigError for another corpus than the digits."""
        if set(config.weights) != {DIGITS}:
            raise ConfigError(f"task = {config.task!r} reads corpus = {DIGITS!r}, got {', '.join(config.weights)}")
        super().__init__(config)
        self.config = FirstItems.of(config)

    def train(self, corpus: str) -> Iterator[Document]:
        """Yield the training digits, or the first ``data.max_pairs`` of them."""
        return islice(self.of("train"), self.config.max_pairs)

    def of(self, split: Split) -> Iterator[Document]:
        """Yield the digits of a split."""
        for image, digit in zip(*digit_images(split), strict=True):
            yield [line_of(image, int(digit))]

    def name_of(self, split: Split) -> str:
        """Display name of dev or test, reported beside scores."""
        return NAMES[split]
