"""BPE-dropout: another spelling of a sentence each time it is read (Provilkov, Emelianenko and Voita, 2020).

A model that has always seen one spelling of a word knows little of its parts. So, in training text, merges are left out
at random: rare pieces occur more often, and the model learns what words have in common. Not in the paper; the text
to be translated is encoded as ever, by ``Tokenizer.encode``.

The library's own dropout takes no seed, and a run could not be resumed with it. Here every random number is a hash of
the seed and of what it is for. There is no state but the number of texts so far, and the spellings of a word are a pure
function: they can be kept, thrown away and made again, and nothing changes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import shake_128
from itertools import chain, pairwise
from operator import getitem

from transduce.errors import ConfigError
from transduce.text.masks import MASKS
from transduce.text.tokenizer import Tokenizer, to_byte_level

__all__ = ["BpeDropout"]

POOL_SIZE = 64  # segmentations of one word; divides 256, so that a random byte picks each of them equally often
MAX_CACHED = 1_000_000  # segmentations kept at a time, about 120 MB
DRAW_BYTES = 8  # one random number
_BYTES_OF_MASKS = to_byte_level(MASKS[0])[:2]  # those that all masks begin with

Ids = tuple[int, ...]


class BpeDropout:
    """Random segmentations of text by the merges of ``tokenizer``, each left out with probability ``p_drop``.

    A word has 64 segmentations, drawn independently, and each occurrence takes any of them: by itself it is distributed
    as if drawn anew, and a word that is common costs 64 draws only.

    All depends on the tokenizer, ``p_drop``, ``seed`` and the texts so far, however they come in calls. Two samplers
    with one seed make the same choices; give source and target different seeds.

    Raises ConfigError if the tokenizer does not merge pairs (WordPiece), or ``p_drop`` is not from 0 to 1.

    >>> from transduce.text import train_bpe
    >>> tokenizer = train_bpe(["low lower low"], vocab_size=264)
    >>> [samples] = BpeDropout(tokenizer, p_drop=0.3, seed=1).sample(["low slow"], 3)
    >>> for ids in samples:
    ...     print(tokenizer.pieces(ids))
    ['▁lo', 'w', '▁', 's', 'l', 'o', 'w']
    ['▁low', '▁', 's', 'l', 'o', 'w']
    ['▁lo', 'w', '▁', 's', 'lo', 'w']
    """

    def __init__(self, tokenizer: Tokenizer, *, p_drop: float, seed: int) -> None:
        if not 0 <= p_drop <= 1:
            raise ConfigError(f"p_drop of BPE-dropout must be from 0 to 1, got {p_drop}")
        self._tokenizer = tokenizer
        self._merges = _Merges(tokenizer)
        self._keeps_masks = tokenizer.has_masks
        self._p_drop = p_drop
        self._seed = seed
        self._n_texts = 0
        self._pools: dict[str, _Pool] = {}
        self._n_kept = 0

    def sample(self, texts: Sequence[str], n_samples: int) -> list[list[list[int]]]:
        """``n_samples`` random encodings of each text, without begin and end symbols; ``decode`` gives the text."""
        return [self._samples(text, n_samples) for text in texts]

    def _samples(self, text: str, n_samples: int) -> list[list[int]]:
        if self._n_kept > MAX_CACHED:
            self._pools.clear()
            self._n_kept = 0
        pools = [self._pool(word) for word in self._tokenizer.words(text)]
        n_words = len(pools)
        picks = [byte % POOL_SIZE for byte in self._random_bytes(f"text {self._n_texts}", n_words * n_samples)]
        self._n_texts += 1
        return [
            list(chain.from_iterable(map(getitem, pools, picks[n * n_words : (n + 1) * n_words])))
            for n in range(n_samples)
        ]

    def _pool(self, word: str) -> _Pool:
        pool = self._pools.get(word)
        if pool is None:
            pool = self._pools[word] = _Pool(partial(self._segmentation, word))
        return pool

    def _segmentation(self, word: str, number: int) -> Ids:
        """Segmentation ``number`` of ``word``, from 0 to 63: the same whenever it is asked for."""
        self._n_kept += 1
        n_draws = len(word) - 1  # there are no more merges than that
        drawn = self._random_bytes(f"word {number} {word}", DRAW_BYTES * n_draws)
        p_drop = 0.0 if self._keeps_masks and _BYTES_OF_MASKS in word else self._p_drop  # a mask has one spelling
        return self._merges.segment(word, p_drop=p_drop, draws=struct.unpack(f"<{n_draws}Q", drawn))

    def _random_bytes(self, purpose: str, n_bytes: int) -> bytes:
        return shake_128(f"{self._seed} {purpose}".encode()).digest(n_bytes)


class _Pool(dict[int, Ids]):
    """Segmentations of one word by their number, each made when it is first asked for."""

    __slots__ = ("_segmentation",)

    def __init__(self, segmentation: Callable[[int], Ids]) -> None:
        super().__init__()
        self._segmentation = segmentation

    def __missing__(self, number: int) -> Ids:
        ids = self[number] = self._segmentation(number)
        return ids


class _Merges:
    """What byte-pair encoding has learned, in ids. The rank of a merge is its place: 0 is the best."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        merges = tokenizer.merges
        if merges is None:
            raise ConfigError("BPE-dropout leaves out merges, and this tokenizer has none; use one that train_bpe made")
        self._ids = ids = tokenizer.vocabulary
        self._ranks = {(ids[left], ids[right]): rank for rank, (left, right) in enumerate(merges)}
        self._merged = [ids[left + right] for left, right in merges]
        self._never = len(merges)  # the rank of two neighbours that do not merge

    def segment(self, word: str, *, p_drop: float, draws: Sequence[int]) -> Ids:
        """Algorithm 1 of Provilkov et al.: apply the best of those merges that are not left out, until none is left.

        Each place where a merge is possible is left out with probability ``p_drop``, anew in every step. Of equal
        merges the leftmost is the better one. ``draws`` are random numbers below 2**64, one for each step.
        """
        ids = [self._ids[token] for token in word]
        ranks = [self._ranks.get(pair, self._never) for pair in pairwise(ids)]
        for draw in draws:
            position = _best_left(ranks, p_drop, draw)
            if position is None or ranks[position] == self._never:
                break
            merged = self._merged[ranks.pop(position)]
            ids[position : position + 2] = [merged]
            if position > 0:
                ranks[position - 1] = self._ranks.get((ids[position - 1], merged), self._never)
            if position < len(ranks):
                ranks[position] = self._ranks.get((merged, ids[position + 1]), self._never)
        return tuple(ids)


def _best_left(ranks: Sequence[int], p_drop: float, draw: int) -> int | None:
    """The position of the best rank that is not left out; None if all are.

    That the n best are left out has probability ``p_drop``**n. So one number below 2**64 decides for all of them.
    """
    n_dropped, limit = 0, p_drop * 2.0**64
    while draw < limit and n_dropped < len(ranks):
        n_dropped += 1
        limit *= p_drop
    if n_dropped == len(ranks):
        return None
    if n_dropped == 0:  # most often
        return ranks.index(min(ranks))
    return sorted(range(len(ranks)), key=ranks.__getitem__)[n_dropped]
