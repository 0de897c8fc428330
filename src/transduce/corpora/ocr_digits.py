"""The generated corpus ``ocr-digits``: rows of scanned handwritten digits, put side by side.

The digits are the 1,797 images of 8 x 8 pixels that scikit-learn has (the test set of UCI's "Optical Recognition of
Handwritten Digits", of 13 writers). Each is in one split only; the rows are drawn from the digits of their split.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray

from transduce.config import ImagesData, Split
from transduce.corpora.media import GeneratedMedia
from transduce.media.images import Pixels
from transduce.media.libraries import library

__all__ = ["OcrDigits", "digits_of"]

DEV_ROWS, TEST_ROWS = 200, 500
MIN_DIGITS, MAX_DIGITS = 2, 8
FACTOR = 4  # of enlargement


class OcrDigits(GeneratedMedia):
    """Rows of digits."""

    def __init__(self, config: ImagesData) -> None:
        self.config = config

    def texts(self, split: Split) -> Iterator[str]:
        """Yield the digits of each row of a split."""
        _, labels = digits_of(split)
        return ("".join(str(labels[each]) for each in chosen) for chosen, _ in self._rows(split))

    def made(self, split: Split) -> Iterator[tuple[str, str, Pixels]]:
        """Yield name, text and grey image of each row of a split."""
        images, labels = digits_of(split)
        for number, (chosen, random) in enumerate(self._rows(split)):
            parts = [np.zeros((8, random.randint(0, 2)))]
            for each in chosen:
                parts += [images[each], np.zeros((8, random.randint(0, 3)))]
            ink = np.kron(np.concatenate(parts, axis=1), np.ones((FACTOR, FACTOR)))
            text = "".join(str(labels[each]) for each in chosen)
            yield f"row/{number}", text, np.rint(255 - ink * (255 / 16)).astype(np.uint8)

    def _rows(self, split: Split) -> Iterator[tuple[list[int], Random]]:
        """Yield the numbers of the digits of each row, and its generator."""
        n_digits = len(digits_of(split)[1])
        n_rows = {"train": self.config.n_pairs, "dev": DEV_ROWS, "test": TEST_ROWS}[split]
        for number in range(n_rows):
            random = Random(f"digits {split} {self.config.corpus_seed} {number}")
            yield random.choices(range(n_digits), k=random.randint(MIN_DIGITS, MAX_DIGITS)), random


@cache
def digits_of(split: Split) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the images (digits, 8, 8), ink from 0 to 16, and the labels of a split: of ten, one is dev, two are test.

    Raises ConfigError if scikit-learn is missing.
    """
    digits = library("sklearn.datasets", needed_for="corpus = 'ocr-digits'").load_digits()
    place = np.random.default_rng(0).permutation(len(digits.target)) % 10
    chosen = {"dev": place == 0, "test": (place == 1) | (place == 2), "train": place > 2}[split]
    return digits.images[chosen], digits.target[chosen]
