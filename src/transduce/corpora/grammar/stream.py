"""Stream of sampled pairs, separated by split and without repeated English sentences."""

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

_MAX_REPEATS = 10_000  # consecutive samples equal to earlier ones


def sentences_of_split(split: Split, *, seed: int) -> Iterator[tuple[str, Sentence]]:
    """Yield (construction, sentence) endlessly; each sentence of dev and test has a held-out combination."""
    sampler = SentenceSampler(Random(f"{split} {seed}"), choices_for(split))
    while True:
        construction, sentence = sampler.sentence()
        if split == "train" or any(map(is_held_out, sentence.combinations())):
            yield construction, sentence


def generate_pairs(split: Split, *, n_pairs: int, seed: int) -> Iterator[GrammarPair]:
    """Stream the distinct pairs of a split, a function of the arguments alone.

    A smaller ``n_pairs`` yields a prefix of a larger one. No pair of train has a held-out combination of lexemes;
    each pair of dev and test has at least one of its own split, and none of the other.

    Raises DataError when no new sentences are found.

    >>> [pair] = generate_pairs("train", n_pairs=1, seed=1)
    >>> pair.tree.startswith("(TOP (S")
    True
    """
    seen: set[bytes] = set()
    n_repeated = 0
    pairs = (realize(sentence) for _, sentence in sentences_of_split(split, seed=seed))
    for pair in islice(pairs, 0, None if n_pairs else 0):  # draw nothing for 0 pairs
        digest = blake2b(pair.en.encode(), digest_size=8).digest()
        if digest in seen:
            n_repeated += 1
            if n_repeated == _MAX_REPEATS:
                raise DataError(
                    f"the grammar corpus found only {len(seen):,} distinct {split} pairs of {n_pairs:,}: "
                    f"the last {n_repeated:,} samples were repetitions; request fewer pairs"
                )
            continue
        n_repeated = 0
        seen.add(digest)
        yield pair
        if len(seen) == n_pairs:
            return
