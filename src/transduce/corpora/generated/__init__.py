"""Pairs that are generated, not read: each module here has one corpus, its ``CORPUS``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from transduce.corpora.corpus import Corpus
from transduce.corpora.source import Pair

__all__ = ["GENERATED", "Generated"]


@dataclass(frozen=True, slots=True)
class Generated:
    """A corpus of pairs that follow from a seed."""

    about: Corpus  # of two languages
    pairs: Callable[..., Iterator[Pair]]  # called with a split, n_pairs=, seed=; gives the first language first


_MODULES = (import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__))
GENERATED: dict[str, Generated] = {each.CORPUS.about.name: each.CORPUS for each in _MODULES}
