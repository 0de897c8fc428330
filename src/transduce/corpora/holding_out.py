"""Held-out sets: dev and test pairs taken from a training text.

A training pair whose source or target equals a held-out one, except for case, punctuation or digits, is dropped;
otherwise scores would measure memorisation.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from transduce.corpora.leakage import folded_line, normalised_line
from transduce.corpora.source import Pair
from transduce.errors import DataError

__all__ = ["MIN_PAIRS", "HeldOut", "held_out_size", "hold_out", "side_keys"]

MAX_HELD_OUT, ONE_IN = 1000, 30  # pairs of dev and of test: one in thirty, at most 1,000
MIN_HELD_OUT, MIN_ONE_IN = 30, 6  # of little text
MIN_PAIRS = 60  # of the whole text
N_CANDIDATES = 4  # drawn for each held-out pair, to prefer pairs that occur once


@dataclass(slots=True)
class HeldOut:
    """Held-out dev and test pairs, and a filter that removes near-duplicates of them from training."""

    dev: list[tuple[str, str]] = field(default_factory=list)
    test: list[tuple[str, str]] = field(default_factory=list)
    n_left_out: int = 0  # near-duplicates of held-out pairs, counted while ``train`` is read
    _keys: set[tuple[int, str]] = field(default_factory=set)

    def train(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Pair]:
        """Yield the pairs of the whole text that share neither source nor target with a held-out pair."""
        held_out = set(self.dev) | set(self.test)
        for pair in pairs:
            if self._keys.isdisjoint(side_keys(pair)):
                yield pair
            else:
                self.n_left_out += pair not in held_out


def held_out_size(n_pairs: int) -> int:
    """Number of pairs of dev, and of test: one in thirty of the text, at most 1,000; of little text at least 30.

    >>> held_out_size(15_000), held_out_size(1_000_000), held_out_size(300), held_out_size(60)
    (500, 1000, 30, 10)
    """
    return min(MAX_HELD_OUT, max(n_pairs // ONE_IN, min(MIN_HELD_OUT, n_pairs // MIN_ONE_IN)))


def hold_out(read: Callable[[], Iterable[tuple[str, str]]], *, seed: int = 1) -> HeldOut:
    """Draw dev and test at random from the pairs that ``read`` yields; pairs that occur once are preferred.

    The text is streamed three times; only candidates are in memory. Raises DataError if there are too few pairs.
    """
    n_pairs = sum(1 for _ in read())
    size = held_out_size(n_pairs)
    if n_pairs < MIN_PAIRS:
        raise DataError(
            f"the text has {n_pairs:,} usable pairs; a translator needs some thousands, and dev and test can only be "
            f"held out of at least {MIN_PAIRS}"
        )
    drawn = random.Random(seed).sample(range(n_pairs), min(n_pairs, N_CANDIDATES * 2 * size))
    indices = set(drawn)
    candidates = {index: pair for index, pair in enumerate(read()) if index in indices}
    occurrences = _occurrences(candidates.values(), read())
    # A stable sort: equally frequent pairs stay in the order drawn.
    ranked = sorted(drawn, key=lambda index: sum(occurrences[key] for key in side_keys(candidates[index])))
    held = HeldOut()
    for index in ranked:
        pair = candidates[index]
        if len(held.dev) + len(held.test) == 2 * size:
            break
        if held._keys.isdisjoint(side_keys(pair)):  # dev and test share no source and no target
            held._keys.update(side_keys(pair))
            (held.dev if len(held.dev) <= len(held.test) else held.test).append(pair)
    return held


def _occurrences(candidates: Iterable[tuple[str, str]], pairs: Iterable[tuple[str, str]]) -> Counter[tuple[int, str]]:
    """Count how often the source and the target of each candidate occur in the text."""
    candidate_keys = {key for pair in candidates for key in side_keys(pair)}
    return Counter(key for pair in pairs for key in side_keys(pair) if key in candidate_keys)


def side_keys(pair: tuple[str, str]) -> Iterator[tuple[int, str]]:
    """Yield what a pair must share with no held-out one: side and text, without case, punctuation and digits."""
    return ((side, _key(text)) for side, text in enumerate(pair))


def _key(text: str) -> str:
    """Return the same key for lines that differ only in case, punctuation or digits.

    >>> _key("Page 12: the END.") == _key("page 37 - the end")
    True
    """
    folded = folded_line(text)
    return normalised_line(folded) or folded
