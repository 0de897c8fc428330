"""Encoding of sentence pairs: normalise, tokenize, filter by length, sample encodings: BPE-dropout, hints of terms.

A chunk of pairs is encoded in two steps, ``PairEncoder.keep`` and ``PairEncoder.encode``. The random numbers of
samples depend on how many pairs were kept before the chunk: so processes can do the first step side by side, and
the second when the chunks before have been counted. Imports no torch, so that a worker process starts fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from random import Random

from transduce.text.bpe_dropout import BpeDropout
from transduce.text.encoded_texts import IdBytes, Ragged, n_ids
from transduce.text.normalise import normalise
from transduce.text.term_hints import WordTable
from transduce.text.tokenizer_pair import Tokenizers

__all__ = ["EncodedPairs", "KeptPairs", "PairEncoder", "PairSampling", "TextPair"]

TextPair = tuple[str, str]
PairOfIds = tuple[IdBytes, IdBytes]


@dataclass(frozen=True, slots=True)
class PairSampling:
    """How several encodings of each pair are drawn.

    BPE-dropout on both sides (Provilkov et al., 2020, section 3.2), with a probability above zero: a target tokenizer
    without merges (the tokens of trees) has one encoding, which is repeated. With ``words``, all sources but the first
    of a pair may have hints of terms.
    """

    p_drop: float
    n_encodings: int
    seed: int
    words: WordTable | None = None


@dataclass(frozen=True, slots=True)
class KeptPairs:
    """The normalised pairs of a chunk that are neither empty nor too long, with their deterministic encodings."""

    texts: list[TextPair]
    plain: list[PairOfIds]
    n_empty: int
    n_too_long: int


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPairs:
    """The rows of a chunk of pairs, and the number of pairs left out."""

    src: Ragged
    tgt: Ragged
    n_empty: int
    n_too_long: int


class PairEncoder:
    """Encodes chunks of pairs, in order."""

    def __init__(self, tokenizers: Tokenizers, *, max_length: int, sampling: PairSampling | None = None) -> None:
        """``max_length``: exclusive bound on the length of a kept text, in tokens.

        Raises ConfigError if ``sampling`` has dropout and the source tokenizer has no merges.
        """
        self._tokenizers, self._max_length, self._sampling = tokenizers, max_length, sampling
        self._samplers = [None, None] if sampling is None or not sampling.p_drop else _samplers(tokenizers, sampling)

    def keep(self, pairs: Sequence[TextPair]) -> KeptPairs:
        """Normalise pairs, encode them without dropout, and leave out the empty and the too long ones."""
        normalised = [(normalise(src), normalise(tgt)) for src, tgt in pairs]
        texts = [pair for pair in normalised if all(pair)]
        src_rows, tgt_rows = (
            tokenizer.encode_packed([pair[side] for pair in texts], max_tokens=self._max_length)
            for side, tokenizer in enumerate((self._tokenizers.src, self._tokenizers.tgt))
        )
        plain = list(zip(src_rows, tgt_rows, strict=True))
        is_kept = list(map(self._is_short, plain))
        kept_texts, kept_plain = list(compress(texts, is_kept)), list(compress(plain, is_kept))
        return KeptPairs(kept_texts, kept_plain, len(pairs) - len(texts), len(texts) - len(kept_texts))

    def encode(self, kept: KeptPairs, *, n_before: int) -> EncodedPairs:
        """Return the rows of pairs, several of each with ``sampling``; ``n_before`` pairs were kept before them."""
        rows = kept.plain if self._sampling is None else list(self._sampled(kept, n_before))
        src, tgt = ([row[side] for row in rows] for side in (0, 1))
        return EncodedPairs(Ragged.of(src), Ragged.of(tgt), kept.n_empty, kept.n_too_long)

    def _sampled(self, kept: KeptPairs, n_before: int) -> Iterator[PairOfIds]:
        """Yield the sampled rows of each pair; a sample that is too long is replaced by the deterministic encoding."""
        assert self._sampling is not None
        n_encodings, (of_source, of_target) = self._sampling.n_encodings, self._samplers
        if self._sampling.words is not None:
            sources = self._with_hints(kept, n_before, self._sampling.words)
        elif of_source is not None:
            sources = of_source.sample_packed([src for src, _ in kept.texts], n_encodings, n_before=n_before)
        else:
            sources = [[src] * n_encodings for src, _ in kept.plain]
        if of_target is not None:
            targets = of_target.sample_packed([tgt for _, tgt in kept.texts], n_encodings, n_before=n_before)
        else:
            targets = [[tgt] * n_encodings for _, tgt in kept.plain]
        for plain, src, tgt in zip(kept.plain, sources, targets, strict=True):
            yield from (row if self._is_short(row) else plain for row in zip(src, tgt, strict=True))

    def _with_hints(self, kept: KeptPairs, n_before: int, words: WordTable) -> list[list[IdBytes]]:
        """Return the encodings of each source with hints of terms, of which each has its own; the first has none."""
        assert self._sampling is not None
        n, seed, sampler = self._sampling.n_encodings, self._sampling.seed, self._samplers[0]
        texts = list(
            chain.from_iterable(
                [src, *(words.hinted(src, tgt, Random(f"{seed} {number} {version}")) for version in range(1, n))]
                for number, (src, tgt) in enumerate(kept.texts, start=n_before)
            )
        )
        if sampler is None:
            rows = self._tokenizers.src.encode_packed(texts, max_tokens=self._max_length)
        else:
            rows = list(chain.from_iterable(sampler.sample_packed(texts, 1, n_before=n_before * n)))
        return [rows[start : start + n] for start in range(0, len(rows), n)]

    def _is_short(self, pair: PairOfIds) -> bool:
        return n_ids(max(pair, key=len)) < self._max_length  # not <=, because EOS is not stored


def _samplers(tokenizers: Tokenizers, sampling: PairSampling) -> list[BpeDropout | None]:
    """Return the samplers of both sides, with different seeds; None for a target tokenizer without merges."""
    src = BpeDropout(tokenizers.src, p_drop=sampling.p_drop, seed=2 * sampling.seed)
    if tokenizers.tgt.merges is None:
        return [src, None]
    return [src, BpeDropout(tokenizers.tgt, p_drop=sampling.p_drop, seed=2 * sampling.seed + 1)]
