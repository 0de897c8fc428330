"""Links between the words of a text and of its translation, as aligners write them: the Pharaoh format.

Words are what stands between spaces, so that any program counts them alike; on request, characters of scripts without
spaces are words, too.

Shapes: X target words, Y source words of a sentence.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

from transduce.imports import numpy as np
from transduce.patterns import compiled_on_use
from transduce.text import normalise
from transduce.text.characters import SPACELESS
from transduce.text.trusted_weights import Span, trusted_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from transduce.inference.translation.segment_translator import SegmentTranslator

    Block = tuple[Sequence[Span], Sequence[Span], NDArray[np.float32]]  # source words, target words, weights_XY
    _Side = tuple[str, Sequence[int]]  # a text, and the number of the word of each character

__all__ = ["AlignedLine", "Link", "aligned_lines", "pharaoh", "word_links"]

Link = tuple[int, int]  # the numbers of a source and a target word, from 0

CHUNK_LINES = 2000  # that are aligned together: lines of similar length share a batch
ALIKE = 1e-5  # weights that differ less say nothing
_SPACED = compiled_on_use(r"\S+")
_CHARACTERS = compiled_on_use(rf"[{SPACELESS}]|[^\s{SPACELESS}]+")


@dataclass(frozen=True, slots=True)
class AlignedLine:
    """The links of a line and its translation, in the order of the translation, and how sure each is: 0 to 1."""

    links: tuple[Link, ...]
    weights: tuple[float, ...]


def aligned_lines(
    translator: SegmentTranslator, pairs: Sequence[tuple[str, str]], *, has_characters: bool = False
) -> Iterator[AlignedLine]:
    """Yield the links of lines and their translations, each (source, target).

    ``has_characters``: a character of a script without spaces is a word.
    """
    from transduce.inference.translation.word_alignment import align_words

    words = _CHARACTERS if has_characters else _SPACED
    for start in range(0, len(pairs), CHUNK_LINES):
        chunk = pairs[start : start + CHUNK_LINES]
        for (source, target), aligned in zip(chunk, align_words(translator, chunk), strict=True):
            links = _links(
                (aligned.source, [*_numbers_as_written(source, words.findall)]),
                (aligned.target, [*_numbers_as_written(target, words.findall)]),
                [(aligned.source_words, aligned.target_words, aligned.weights_XY)],
            )
            yield AlignedLine(tuple(link for link, _ in links), tuple(weight for _, weight in links))


def word_links(source: str, target: str, blocks: Iterable[Block]) -> tuple[Link, ...]:
    """Return for each target word the source word that it most belongs to, in the order of the target.

    Each block has the places of words of a sentence in both texts, and how much the target's belong to the source's. A
    target word that belongs to all alike, as without attention, has no link.

    >>> weights_XY = np.array([[0.1, 0.9], [0.8, 0.2]], np.float32)
    >>> word_links("a b", "y x", [([(0, 1), (2, 3)], [(0, 1), (2, 3)], weights_XY)])
    ((1, 0), (0, 1))
    """
    sides = [(text, _word_numbers(text)) for text in (source, target)]
    return tuple(link for link, _ in _links(sides[0], sides[1], blocks))


def pharaoh(links: Iterable[Link]) -> str:
    """Return links as text.

    >>> pharaoh([(1, 0), (0, 1)])
    '1-0 0-1'
    """
    return " ".join(f"{source}-{target}" for source, target in links)


def _links(source: _Side, target: _Side, blocks: Iterable[Block]) -> list[tuple[Link, float]]:
    """Return the links of two texts, with their weights."""
    weights = defaultdict[int, Counter[int]](Counter)
    for source_words, target_words, weights_XY in blocks:
        trusted_XY = trusted_weights(weights_XY, source[0], source_words, target[0], target_words)
        for (start, _), raw_Y, weights_Y in zip(target_words, weights_XY, trusted_XY.tolist(), strict=True):
            if len(raw_Y) > 1 and np.ptp(raw_Y) < ALIKE:
                continue
            for (source_start, _), weight in zip(source_words, weights_Y, strict=True):
                weights[target[1][start]][source[1][source_start]] += weight
    return [
        ((best, number), weight / of_word.total())
        for number, of_word in sorted(weights.items())
        for best, weight in of_word.most_common(1)
    ]


def _word_numbers(text: str) -> list[int]:
    """Return for each character the number of its word between spaces; of a space, that of the word before."""
    numbers, number, is_space_before = list[int](), -1, True
    for character in text:
        is_space = character.isspace()
        number += is_space_before and not is_space
        numbers.append(number)
        is_space_before = is_space
    return numbers


def _numbers_as_written(line: str, divide: Callable[[str], Sequence[str]]) -> Iterator[int]:
    """Yield the number of its word for each character of a line as it is read, ``normalise(line)``.

    Words that show nothing, and are not read, are counted, too.

    >>> [*_numbers_as_written(" a  \\u200b bc ", str.split)]
    [0, 0, 2, 2, 2]
    """
    number = -1
    for word in line.split():
        shown = normalise(word)
        for piece in divide(shown) or [""]:
            number += 1
            yield from repeat(number, len(piece))
        if shown:
            yield number  # of the space
