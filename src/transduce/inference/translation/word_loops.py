"""Loops of a translation: the same words, or parts of one, side by side more often than its source has them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from transduce.patterns import compiled_on_use
from transduce.search import n_repeats
from transduce.text.characters import SPACELESS

__all__ = ["is_repetitive", "without_loops"]

MAX_TIMES = 2  # that the same words may stand side by side, unless they do so in the source; of a single word once more
MAX_PERIOD = 8  # words that are repeated together
MIN_LOOP_LETTERS = 6
MAX_PASSES = 10
MAX_SIGNS = 3  # equal ones side by side, as in "!!!"
_WORD = compiled_on_use(rf"[{SPACELESS}]|[^\W_{SPACELESS}]+")
_IS_SIGN = compiled_on_use(f"[{SPACELESS}]")
_SIGNS = compiled_on_use(r"([^\w\s])\1+")
# Four times; a letter six times.
_LOOP_IN_WORD = compiled_on_use(r"([^\W\d_]{2,8}?)\1{3,}|([^\W\d_])\2{5,}", re.IGNORECASE)


def is_repetitive(source: str, target: str) -> bool:
    """Whether a translation has a model's loop: more equal words, parts of one, or signs side by side than its source.

    >>> is_repetitive("behind", "derrière " * 4), is_repetitive("No, no, no, no!", "Nein, nein, nein, nein!")
    (True, False)
    """
    words = _words(target)
    n_times = _repeats(words)
    return (
        (n_times > 1 and n_times > _max_times(source))
        or (any(map(_has_loop, words)) and not any(map(_has_loop, _words(source))))
        or _n_signs(target) > max(MAX_SIGNS, _n_signs(source))
    )


def without_loops(source: str, target: str) -> str:
    """Return a translation that is not repetitive: of each loop, only as many times as there may be.

    >>> without_loops("Wait behind it", "Warte hinter hinter hinter hinter hinter ihm")
    'Warte hinter hinter hinter ihm'
    """
    n_signs = max(MAX_SIGNS, _n_signs(source))
    target = _SIGNS.sub(lambda signs: signs.group()[:n_signs], target)
    may_loop = any(map(_has_loop, _words(source)))
    for _ in range(MAX_PASSES):  # to leave a loop out may make another
        if not is_repetitive(source, target):
            break
        for period in range(1, MAX_PERIOD + 1):
            target = _shortened(target, period, _max_times(source))
        if not may_loop:
            target = _WORD.sub(lambda word: _without_loop(word.group()), target)
    return target


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _max_times(source: str) -> int:
    """Return how many times words may stand side by side in the translation of a source, as ``_repeats`` counts."""
    words = _words(source)
    return max(min(MAX_TIMES, len(words)), _repeats(words))


def _n_signs(text: str) -> int:
    """Return the length of the longest run of a sign."""
    return max((len(signs.group()) for signs in _SIGNS.finditer(text)), default=1)


def _repeats(words: Sequence[str]) -> int:
    """Return how many times the same two to ``MAX_PERIOD`` words stand side by side; of one word, one time less.

    Signs of scripts without spaces, such as Chinese, may stand more often.
    """
    if max(Counter(words).values(), default=0) <= MAX_TIMES:
        return 1
    of_one = max(sum(1 for _ in same) // 2 if _IS_SIGN.fullmatch(word) else sum(1 for _ in same) - 1
                 for word, same in groupby(words))  # fmt: skip
    longest = min(MAX_PERIOD, len(words) // MAX_TIMES)
    return max(1, of_one, *(n_repeats(words, period) for period in range(2, longest + 1)))


def _shortened(text: str, period: int, max_times: int) -> str:
    """Return a text without what follows ``max_times`` times the same ``period`` words."""
    matches = list(_WORD.finditer(text))
    words = [match.group().lower() for match in matches]
    parts, position = list[str](), 0
    for first, end in _surplus(words, period, max_times):
        parts.append(text[position : matches[first - 1].end()])
        position = matches[end - 1].end()
    return "".join((*parts, text[position:]))


def _surplus(words: Sequence[str], period: int, max_times: int) -> Iterator[tuple[int, int]]:
    """Yield the (first, end) of the words that repeat ``period`` words too often, at least one word after the first."""
    is_same = [word == later for word, later in zip(words, words[period:], strict=False)]
    start = 0
    for same, run in groupby(is_same):
        length = sum(1 for _ in run)
        times = max_times if period > 1 else 2 * max_times + 1 if _IS_SIGN.fullmatch(words[start]) else max_times + 1
        if same and length + period >= (times + 1) * period:
            yield start + times * period, start + length + period
        start += length


def _has_loop(word: str) -> bool:
    """Whether letters of a word are repeated.

    >>> _has_loop("lalalalala"), _has_loop("mississippi")
    (True, False)
    """
    may_have = len(word) >= MIN_LOOP_LETTERS and 2 * len(set(word)) <= len(word)
    return may_have and _LOOP_IN_WORD.search(word) is not None


def _without_loop(word: str) -> str:
    return _LOOP_IN_WORD.sub(r"\1\2", word) if _has_loop(word.lower()) else word
