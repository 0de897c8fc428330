"""BPE-dropout: random segmentations of the training text (Provilkov, Emelianenko and Voita, 2020). Not in the paper.

Dropping merges at random makes rare tokens more frequent in training and shows the model how words are composed. Text
to be translated is segmented without dropout, by ``Tokenizer.encode``.

The library's own dropout takes no seed, so a run could not be resumed with it. Here every random number is a hash of
the seed and its purpose. The only state is the number of texts so far; the segmentations of a word are a pure function
of the seed, so caching or evicting them changes nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import shake_128
from itertools import chain, pairwise
from operator import getitem
from typing import TypeVar

from transduce.errors import ConfigError
from transduce.text.alphabet import n_character_merges
from transduce.text.byte_level import to_byte_level
from transduce.text.encoded_texts import IdBytes, pack_ids, unpack_ids
from transduce.text.masks import MASKS
from transduce.text.tokenizer import Tokenizer
from transduce.text.word_cache import words_of

__all__ = ["BpeDropout"]

POOL_SIZE = 64  # segmentations per word; divides 256, so that a random byte picks uniformly
MAX_CACHED = 1_000_000  # segmentations in the cache, about 120 MB
DRAW_BYTES = 8  # of one random number
_MASK_PREFIX = to_byte_level(MASKS[0])[:2]  # the first two bytes, common to all masks and term marks

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class BpeDropout:
    """A sampler of segmentations by ``tokenizer``, with each merge dropped with probability ``p_drop``.

    With an ``alphabet`` of characters these stay whole, as in the paper.

    Each word has a pool of 64 independent segmentations, and each occurrence picks one at random. An occurrence has the
    exact distribution of BPE-dropout, and a frequent word costs at most 64 segmentations.

    The samples depend on the tokenizer, ``p_drop``, ``seed`` and the texts so far, not on how calls group the texts.
    Samplers with the same seed make the same choices: give source and target different seeds.

    Raises ConfigError if the tokenizer has no merges (WordPiece), or ``p_drop`` is not from 0 to 1.

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
        self._keeps_masks = tokenizer.has_masks or tokenizer.has_term_marks
        self._p_drop = p_drop
        self._seed = seed
        self._n_texts = 0
        self._pools = _OnFirstUse(self._new_pool)
        self._pools_of = _OnFirstUse(self._new_pools_of)
        self._n_cached = 0

    def sample(self, texts: Sequence[str], n_samples: int) -> list[list[list[int]]]:
        """Return ``n_samples`` random encodings of each text, without BOS and EOS; each decodes to the text."""
        return [list(map(unpack_ids, samples)) for samples in self.sample_packed(texts, n_samples)]

    def sample_packed(
        self, texts: Sequence[str], n_samples: int, *, n_before: int | None = None
    ) -> list[list[IdBytes]]:
        """Like ``sample``, with the ids of each encoding as bytes.

        ``n_before``: the number of texts before these, if other samplers of the same seed took some of them.
        """
        if n_before is not None:
            self._n_texts = n_before
        return [self._samples(text, n_samples) for text in texts]

    def _samples(self, text: str, n_samples: int) -> list[IdBytes]:
        if self._n_cached > MAX_CACHED:
            self._pools.clear()
            self._pools_of.clear()
            self._n_cached = 0
        pools = list(chain.from_iterable(map(self._pools_of.__getitem__, words_of(text))))
        n_words = len(pools)
        picks = [byte % POOL_SIZE for byte in self._random_bytes(f"text {self._n_texts}", n_words * n_samples)]
        self._n_texts += 1
        return [b"".join(map(getitem, pools, picks[n * n_words : (n + 1) * n_words])) for n in range(n_samples)]

    def _new_pools_of(self, text: str) -> list[_Pool]:
        """Return the pool of each pre-tokenized word of a text (a word before its punctuation, for example)."""
        self._n_cached += 1
        return [self._pools[word] for word in self._tokenizer.words(text)]

    def _new_pool(self, word: str) -> _Pool:
        return _OnFirstUse(partial(self._segmentation, word))

    def _segmentation(self, word: str, number: int) -> IdBytes:
        """Return segmentation ``number`` (0 to 63) of ``word``, a pure function."""
        self._n_cached += 1
        n_draws = len(word) - 1  # the maximum number of merges
        random_bytes = self._random_bytes(f"word {number} {word}", DRAW_BYTES * n_draws)
        p_drop = 0.0 if self._keeps_masks and _MASK_PREFIX in word else self._p_drop  # a mask is always one token
        return self._merges.segment(word, p_drop=p_drop, draws=struct.unpack(f"<{n_draws}Q", random_bytes))

    def _random_bytes(self, purpose: str, n_bytes: int) -> bytes:
        return shake_128(f"{self._seed} {purpose}".encode()).digest(n_bytes)


class _OnFirstUse(dict[KeyT, ValueT]):
    """A dictionary that computes a missing value with ``compute`` and keeps it."""

    __slots__ = ("_compute",)

    def __init__(self, compute: Callable[[KeyT], ValueT]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: KeyT) -> ValueT:
        value = self[key] = self._compute(key)
        return value


_Pool = _OnFirstUse[int, IdBytes]  # segmentations of one word by number


class _Merges:
    """The merges of a BPE tokenizer, as token ids. The merge of rank 0 is applied first."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        merges = tokenizer.merges
        if merges is None:
            raise ConfigError("BPE-dropout needs merges, and this tokenizer has none; use one that train_bpe made")
        self._ids = ids = tokenizer.vocabulary
        self._ranks = {(ids[left], ids[right]): rank for rank, (left, right) in enumerate(merges)}
        self._merged = [ids[left + right] for left, right in merges]
        self._no_merge = len(merges)  # the rank of a pair without a merge
        self._n_never_dropped = n_character_merges(merges)  # in the papers, characters are what words consist of

    def segment(self, word: str, *, p_drop: float, draws: Sequence[int]) -> IdBytes:
        """Segment ``word`` by algorithm 1 of Provilkov et al.: apply the best merge not dropped, until there is none.

        In every step each possible merge is dropped independently with probability ``p_drop``, but for those that make
        the characters of an alphabet of these. Ties in rank go to the leftmost position. ``draws`` are random numbers
        below 2**64, one for each step.
        """
        ids = [self._ids[token] for token in word]
        ranks = [self._ranks.get(pair, self._no_merge) for pair in pairwise(ids)]
        for draw in draws:
            if self._n_never_dropped and (lowest := min(ranks, default=self._no_merge)) < self._n_never_dropped:
                position: int | None = ranks.index(lowest)
            else:
                position = _best_kept(ranks, p_drop, draw)
            if position is None or ranks[position] == self._no_merge:
                break
            merged = self._merged[ranks.pop(position)]
            ids[position : position + 2] = [merged]
            if position > 0:
                ranks[position - 1] = self._ranks.get((ids[position - 1], merged), self._no_merge)
            if position < len(ranks):
                ranks[position] = self._ranks.get((merged, ids[position + 1]), self._no_merge)
        return pack_ids(ids)


def _best_kept(ranks: Sequence[int], p_drop: float, draw: int) -> int | None:
    """Return the position of the lowest rank that is not dropped; None if all are dropped.

    The n lowest are all dropped with probability ``p_drop``**n, so one uniform ``draw`` below 2**64 decides for all.
    """
    n_dropped, threshold = 0, p_drop * 2.0**64
    while draw < threshold and n_dropped < len(ranks):
        n_dropped += 1
        threshold *= p_drop
    if n_dropped == len(ranks):
        return None
    if n_dropped == 0:  # the usual case
        return ranks.index(min(ranks))
    return sorted(range(len(ranks)), key=ranks.__getitem__)[n_dropped]
