"""Weights between the words of two texts, without what attention is known to get wrong.

Shapes: X target words, Y source words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from transduce.imports import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Span", "is_mark", "trusted_weights"]

Span = tuple[int, int]  # (start, end)


def trusted_weights(
    weights_XY: NDArray[np.float32],
    source: str,
    source_words: Sequence[Span],
    target: str,
    target_words: Sequence[Span],
) -> NDArray[np.float32]:
    """Return the weights with rows that sum to 1, without what attention is known to get wrong.

    Where nothing fits, attention rests on punctuation: so words belong to words only, and a punctuation mark to equal
    ones, or to all words alike. What has other characters than letters, a number or a URL, belongs to equal ones.
    """
    n_source, n_target = len(source_words), len(target_words)
    if weights_XY.shape != (n_target, n_source):
        weights_XY = np.full((n_target, n_source), 1 / max(1, n_source), np.float32)
    sources = [source[start:end] for start, end in source_words]
    is_word_Y = np.array([not is_mark(word) for word in sources], bool)
    equal_Y: dict[str, NDArray[np.bool_]] = {}  # by target word
    trusted_XY = weights_XY.astype(np.float32) + np.float32(1e-6)
    for row, (start, end) in enumerate(target_words):
        word = target[start:end]
        if word not in equal_Y and not word.isalpha():
            equal_Y[word] = np.array([each == word for each in sources], bool)
        is_equal = word in equal_Y and (is_mark(word) or equal_Y[word].any())
        trusted_XY[row] *= equal_Y[word] if is_equal else is_word_Y
    totals_X1 = trusted_XY.sum(1, keepdims=True)
    return np.where(totals_X1 > 0, trusted_XY / np.where(totals_X1 > 0, totals_X1, 1), 1 / max(1, n_source))


def is_mark(word: str) -> bool:
    """Whether a word is a punctuation mark."""
    return not any(map(str.isalnum, word))
