"""Links between the words of a text and of its translation, as aligners write them: the Pharaoh format.

Words are what stands between spaces, so that any program counts them alike.

Shapes: X target words, Y source words of a sentence.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from transduce.imports import numpy as np
from transduce.text.trusted_weights import trusted_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Block = tuple[Sequence["Span"], Sequence["Span"], NDArray[np.float32]]  # source words, target words, weights_XY

__all__ = ["Link", "pharaoh", "word_links"]

Span = tuple[int, int]  # the (start, end) of characters
Link = tuple[int, int]  # the numbers of a source and a target word, from 0


def word_links(source: str, target: str, blocks: Iterable[Block]) -> tuple[Link, ...]:
    """Return for each target word the source word that it most belongs to, in the order of the target.

    Each block has the places of words of a sentence in both texts, and how much the target's belong to the source's.

    >>> weights_XY = np.array([[0.1, 0.9], [0.8, 0.2]], np.float32)
    >>> word_links("a b", "y x", [([(0, 1), (2, 3)], [(0, 1), (2, 3)], weights_XY)])
    ((1, 0), (0, 1))
    """
    source_of, target_of = _word_numbers(source), _word_numbers(target)
    weights = defaultdict[int, Counter[int]](Counter)
    for source_words, target_words, weights_XY in blocks:
        weights_XY = trusted_weights(weights_XY, source, source_words, target, target_words)
        for (target_start, _), weights_Y in zip(target_words, weights_XY.tolist(), strict=True):
            for (source_start, _), weight in zip(source_words, weights_Y, strict=True):
                weights[target_of[target_start]][source_of[source_start]] += weight
    return tuple((of_word.most_common(1)[0][0], number) for number, of_word in sorted(weights.items()) if of_word)


def pharaoh(links: Iterable[Link]) -> str:
    """Return links as text.

    >>> pharaoh([(1, 0), (0, 1)])
    '1-0 0-1'
    """
    return " ".join(f"{source}-{target}" for source, target in links)


def _word_numbers(text: str) -> list[int]:
    """Return for each character the number of its word between spaces; of a space, that of the word before."""
    numbers, number, is_space_before = list[int](), -1, True
    for character in text:
        is_space = character.isspace()
        number += is_space_before and not is_space
        numbers.append(number)
        is_space_before = is_space
    return numbers
