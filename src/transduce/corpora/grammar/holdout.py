"""Held-out combinations of lexemes.

A combination is an adjective with its noun, a subject with its verb, or a verb with its object. A checksum of its
words alone assigns it to a split, whatever the seed and corpus size, so held-out combinations are never trained on.
"""

from __future__ import annotations

import zlib
from functools import cache

from transduce.config import Split
from transduce.corpora.grammar.phrases import Combination

__all__ = ["is_allowed", "is_held_out", "owner_of"]

_SALT = "transduce grammar"  # changing it changes the splits
_HELD_OUT_PERCENT = 4  # for dev, and as many for test


@cache
def owner_of(combination: Combination) -> Split:
    """Return the split that a combination belongs to.

    >>> owner_of(("object", "read", "book"))
    'train'
    """
    bucket = zlib.crc32(" ".join((_SALT, *combination)).encode()) % 100
    if bucket < _HELD_OUT_PERCENT:
        return "dev"
    return "test" if bucket < 2 * _HELD_OUT_PERCENT else "train"


def is_held_out(combination: Combination) -> bool:
    """Whether no training sentence has this combination."""
    return owner_of(combination) != "train"


def is_allowed(combination: Combination, split: Split) -> bool:
    """Whether sentences of a split may contain this combination: one of training, or of the split itself."""
    return owner_of(combination) in ("train", split)
