"""Encoding of sentence pairs: normalise, tokenize, filter by length, sample encodings by BPE-dropout.

A chunk of pairs is encoded in two steps, ``PairEncoder.keep`` and ``PairEncoder.encode``. The random numbers of
BPE-dropout depend on how many pairs were kept before the chunk: so processes can do the first step side by side, and
the second when the chunks before have been counted. Imports no torch, so that a worker process starts fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

from transduce.text.bpe_dropout import BpeDropout
from transduce.text.encoded_texts import EncodedTexts, IdBytes, n_ids
from transduce.text.normalise import normalise
from transduce.text.tokenizer import Tokenizers

__all__ = ["EncodedPairs", "KeptPairs", "PairDropout", "PairEncoder", "TextPair"]

TextPair = tuple[str, str]
PairOfIds = tuple[IdBytes, IdBytes]


@dataclass(frozen=True, slots=True)
class PairDropout:
    """Settings of BPE-dropout on both sides: several encodings of each pair. Provilkov et al. (2020), section 3.2.

    A target tokenizer without merges (the tokens of trees) has one encoding, which is repeated.
    """

    p_drop: float
    n_encodings: int
    seed: int


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

    src: EncodedTexts
    tgt: EncodedTexts
    n_empty: int
    n_too_long: int


class PairEncoder:
    """Encodes chunks of pairs, in order."""

    def __init__(self, tokenizers: Tokenizers, *, max_length: int, dropout: PairDropout | None = None) -> None:
        """``max_length``: exclusive bound on the length of a kept text, in tokens.

        Raises ConfigError if ``dropout`` is given and the source tokenizer has no merges.
        """
        self._tokenizers, self._max_length, self._dropout = tokenizers, max_length, dropout
        self._samplers = [] if dropout is None else _samplers(tokenizers, dropout)

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
        """Return the rows of pairs, ``n_encodings`` of each with dropout; ``n_before`` pairs were kept before them."""
        rows = kept.plain if self._dropout is None else list(self._sampled(kept, n_before))
        src, tgt = ([row[side] for row in rows] for side in (0, 1))
        return EncodedPairs(EncodedTexts.of(src), EncodedTexts.of(tgt), kept.n_empty, kept.n_too_long)

    def _sampled(self, kept: KeptPairs, n_before: int) -> Iterator[PairOfIds]:
        """Yield the sampled rows of each pair; a sample that is too long is replaced by the deterministic encoding."""
        assert self._dropout is not None
        n_encodings = self._dropout.n_encodings
        samples = [
            [[pair[side]] * n_encodings for pair in kept.plain]
            if sampler is None
            else sampler.sample_packed([text[side] for text in kept.texts], n_encodings, n_before=n_before)
            for side, sampler in enumerate(self._samplers)
        ]
        for plain, src, tgt in zip(kept.plain, *samples, strict=True):
            yield from (row if self._is_short(row) else plain for row in zip(src, tgt, strict=True))

    def _is_short(self, pair: PairOfIds) -> bool:
        return n_ids(max(pair, key=len)) < self._max_length  # not <=, because EOS is not stored


def _samplers(tokenizers: Tokenizers, dropout: PairDropout) -> list[BpeDropout | None]:
    """Return the samplers of both sides, with different seeds; None for a target tokenizer without merges."""
    src = BpeDropout(tokenizers.src, p_drop=dropout.p_drop, seed=2 * dropout.seed)
    if tokenizers.tgt.merges is None:
        return [src, None]
    return [src, BpeDropout(tokenizers.tgt, p_drop=dropout.p_drop, seed=2 * dropout.seed + 1)]
