"""The stream of pairs: drawn, kept apart by split, and never the same English sentence twice."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from random import Random

from transduce.config import Split
from transduce.corpora.grammar.choices import choices_for
from transduce.corpora.grammar.holdout import is_held_out
from transduce.corpora.grammar.sentence_sampler import SentenceSampler
from transduce.corpora.grammar.sentences import GrammarPair, Sentence, realize
from transduce.errors import DataError

__all__ = ["generate_pairs", "sentences_of_split"]

_MAX_TRIES_FOR_ONE = 10_000  # in a row that gave nothing new


def sentences_of_split(split: Split, *, seed: int) -> Iterator[tuple[str, Sentence]]:
    """Endless sentences with the names of their constructions; those of dev and test have a held-out combination."""
    sampler = SentenceSampler(Random(f"{split} {seed}"), choices_for(split))
    while True:
        construction, sentence = sampler.sentence()
        if split == "train" or any(map(is_held_out, sentence.combinations())):
            yield construction, sentence


def generate_pairs(split: Split, *, n_pairs: int, seed: int) -> Iterator[GrammarPair]:
    """Distinct pairs of a split, as a stream; a function of the arguments alone.

    A longer call begins with the pairs of a shorter one. No pair of train has a held-out combination of lexemes,
    each pair of dev and test has at least one of its own split's, and none of the other's.

    Raises DataError if no new sentence is found any more.

    >>> [pair] = generate_pairs("train", n_pairs=1, seed=1)
    >>> pair.tree.startswith("(TOP (S")
    True
    """
    seen: set[bytes] = set()
    n_repeated = 0
    pairs = (realize(sentence) for _, sentence in sentences_of_split(split, seed=seed))
    for pair in islice(pairs, 0, None if n_pairs else 0):
        digest = blake2b(pair.en.encode(), digest_size=8).digest()
        if digest in seen:
            n_repeated += 1
            if n_repeated == _MAX_TRIES_FOR_ONE:
                raise DataError(
                    f"the grammar corpus found only {len(seen):,} distinct {split} pairs of {n_pairs:,}: "
                    f"{n_repeated:,} tries in a row gave nothing new; ask for fewer pairs"
                )
            continue
        n_repeated = 0
        seen.add(digest)
        yield pair
        if len(seen) == n_pairs:
            return
