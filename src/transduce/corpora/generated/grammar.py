"""The built-in corpus as pairs."""

from __future__ import annotations

from collections.abc import Iterator

from transduce.config import Split
from transduce.corpora.catalogue import BUILT_IN
from transduce.corpora.corpus import Corpus
from transduce.corpora.generated import Generated
from transduce.corpora.grammar import generate_pairs
from transduce.corpora.source import Pair

__all__ = ["CORPUS"]


def _pairs(split: Split, *, n_pairs: int, seed: int) -> Iterator[Pair]:
    return ((pair.en, pair.de) for pair in generate_pairs(split, n_pairs=n_pairs, seed=seed))


CORPUS = Generated(
    Corpus(
        BUILT_IN, languages=("en", "de"), licence="MIT",
        size="30,000 pairs by default, up to a million and more; dev 500; test 1,000",
        source="built in: generated from a seed by a grammar, with English trees",
    ),
    _pairs,
)  # fmt: skip
