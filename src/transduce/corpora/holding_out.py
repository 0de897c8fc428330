"""Dev and test text held out of a training text, so that nothing of it is trained on.

A pair whose source or target is held out as well, or differs from it only in case, punctuation or digits, is left out
of training: else the scores would be of memory.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from transduce.corpora.leakage import normalised_line
from transduce.corpora.paired_text import Pairs
from transduce.errors import DataError

__all__ = ["HeldOut", "held_out_size", "hold_out"]

MOST, ONE_IN, MIN_PAIRS = 1000, 30, 60  # pairs of dev, and of test; share of all; and below that there is no text
N_CANDIDATES = 4  # for each pair to hold out, looked at for one that comes only once


@dataclass(slots=True)
class HeldOut:
    """Which pairs are dev and test, and which are too much like them to be trained on."""

    dev: list[tuple[str, str]] = field(default_factory=list)
    test: list[tuple[str, str]] = field(default_factory=list)
    n_left_out: int = 0  # pairs that are neither in dev nor in test, and like one that is; counted as ``train`` is read
    _keys: set[tuple[int, str]] = field(default_factory=set)

    def train(self, pairs: Iterable[tuple[str, str]]) -> Pairs:
        """Those of ``pairs``, all of the text, that may be trained on."""
        own = set(self.dev) | set(self.test)
        for pair in pairs:
            if self._keys.isdisjoint(_sided_keys(pair)):
                yield pair
            else:
                self.n_left_out += pair not in own


def held_out_size(n_pairs: int) -> int:
    """How many pairs dev has, and test: one in thirty of the text, and at most 1,000.

    >>> held_out_size(15_000), held_out_size(1_000_000)
    (500, 1000)
    """
    return min(MOST, n_pairs // ONE_IN)


def hold_out(read: Callable[[], Iterable[tuple[str, str]]], *, seed: int = 1) -> HeldOut:
    """Choose dev and test from the pairs that ``read`` gives, at random; those that come only once are preferred.

    The pairs are read three times, as a stream; only candidates are in memory. Raises DataError if there are too few.
    """
    n_pairs = sum(1 for _ in read())
    size = held_out_size(n_pairs)
    if n_pairs < MIN_PAIRS:
        raise DataError(
            f"the text has {n_pairs:,} pairs that can be used; a translator learns from some thousands, and "
            f"{MIN_PAIRS} are the least from which dev and test can be held out"
        )
    draw = random.Random(seed)
    chosen = draw.sample(range(n_pairs), min(n_pairs, N_CANDIDATES * 2 * size))
    places = set(chosen)
    candidates = {place: pair for place, pair in enumerate(read()) if place in places}
    occurrences = _occurrences(candidates.values(), read())
    # Stable, so that among those that come equally often the order is the drawn one.
    ranked = sorted(chosen, key=lambda place: sum(occurrences[key] for key in _sided_keys(candidates[place])))
    held = HeldOut()
    for place in ranked:
        pair = candidates[place]
        if len(held.dev) + len(held.test) == 2 * size:
            break
        if held._keys.isdisjoint(_sided_keys(pair)):  # dev and test have nothing in common either
            held._keys.update(_sided_keys(pair))
            (held.dev if len(held.dev) <= len(held.test) else held.test).append(pair)
    return held


def _occurrences(candidates: Iterable[tuple[str, str]], pairs: Iterable[tuple[str, str]]) -> Counter[tuple[int, str]]:
    """How often the source and the target of each candidate come in the text."""
    wanted = {key for pair in candidates for key in _sided_keys(pair)}
    return Counter(key for pair in pairs for key in _sided_keys(pair) if key in wanted)


def _sided_keys(pair: tuple[str, str]) -> Iterator[tuple[int, str]]:
    return ((side, _key(text)) for side, text in enumerate(pair))


def _key(text: str) -> str:
    """What two lines have in common that differ in case, punctuation or digits alone.

    >>> _key("Page 12: the END.") == _key("page 37 - the end")
    True
    """
    return normalised_line(text.casefold()) or text.strip()
