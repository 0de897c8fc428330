"""Pair stores: normalised, tokenized sentence pairs in the columns ``src`` and ``tgt``.

Shapes: R rows of the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.data.columns import Ids
from transduce.data.store import LeftOut, Store, StoreSummary, open_store, write_store
from transduce.text import BpeDropout, Tokenizers, normalise
from transduce.text.chunks import chunks

__all__ = ["PairDropout", "PairStore", "open_pairs", "write_pairs"]

MAX_PAIRS_IN_MEMORY = 8192  # texts and ids

PairOfIds = tuple[list[int], list[int]]


@dataclass(frozen=True, slots=True, eq=False)
class PairStore(Store):
    """A pair store open for reading. Ids exclude EOS, lengths include it."""

    src_lengths: NDArray[np.int32]  # (R,)
    tgt_lengths: NDArray[np.int32]  # (R,)

    def pair(self, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return a copy of the source and target ids of one row."""
        return self.columns["src"].row(row), self.columns["tgt"].row(row)


def open_pairs(folder: Path, tokenizers: Tokenizers | None = None) -> PairStore:
    """Check every file of the pair store at ``folder`` and open it for reading.

    Raises DataError if a file is missing or corrupt, or if the store was not made with ``tokenizers``.
    """
    fingerprint = None if tokenizers is None else tokenizers.fingerprint
    store = open_store(folder, _columns(tokenizers), tokenizer_fingerprint=fingerprint)
    src_lengths, tgt_lengths = (store.columns[side].lengths_R + np.int32(1) for side in ("src", "tgt"))
    return PairStore(folder, store.summary, store.columns, src_lengths, tgt_lengths)


def write_pairs(
    folder: Path,
    corpora: Mapping[str, Iterable[tuple[str, str]]],
    tokenizers: Tokenizers,
    *,
    max_length: int,
    dropout: PairDropout | None = None,
) -> StoreSummary:
    """Normalise and encode the pairs of each corpus into a new store at ``folder``, written atomically.

    The pairs are streamed in constant memory. With ``dropout``, each pair has several sampled encodings. Pairs are
    filtered by the length of their deterministic encoding, which also replaces a sample that is too long.

    Raises DataError if no pair is left, or if ``folder`` exists and is not empty.

    >>> import tempfile
    >>> from transduce.text import train_bpe
    >>> tokenizer = train_bpe(["a dog"], vocab_size=260)
    >>> pairs = [("a dog", "ein Hund"), ("", "leer"), ("a cat", "eine Katze")]
    >>> folder = Path(tempfile.mkdtemp()) / "store"
    >>> summary = write_pairs(folder, {"pets": pairs}, Tokenizers(tokenizer, tokenizer), max_length=10)
    >>> summary.n_read, summary.n_pairs, summary.n_empty, summary.n_too_long
    (3, 1, 1, 1)
    """
    left_out = LeftOut()

    def rows(pairs: Iterable[tuple[str, str]]) -> Iterator[dict[str, list[int]]]:
        for chunk in chunks(pairs, MAX_PAIRS_IN_MEMORY, _n_characters):
            normalised = [(normalise(src), normalise(tgt)) for src, tgt in chunk]
            texts = [pair for pair in normalised if all(pair)]
            plain = list(_encode(texts, tokenizers, max_length=max_length))
            is_kept = [max(map(len, pair)) < max_length for pair in plain]  # not <=, because EOS is not stored
            left_out.n_empty += len(chunk) - len(texts)
            left_out.n_too_long += is_kept.count(False)
            kept = list(compress(plain, is_kept))
            if dropout is not None:
                kept = dropout.draw(list(compress(texts, is_kept)), kept, max_length=max_length)
            for src_ids, tgt_ids in kept:
                yield {"src": src_ids, "tgt": tgt_ids}

    return write_store(
        folder,
        {corpus: rows(pairs) for corpus, pairs in corpora.items()},
        _columns(tokenizers),
        tokenizer_fingerprint=tokenizers.fingerprint,
        max_length=max_length,
        n_encodings=1 if dropout is None else dropout.n_encodings,
        left_out=left_out,
    )


def _columns(tokenizers: Tokenizers | None) -> dict[str, Ids]:
    if tokenizers is None:
        return {"src": Ids(vocab_size=None), "tgt": Ids(vocab_size=None)}
    return {"src": Ids(vocab_size=tokenizers.src.size), "tgt": Ids(vocab_size=tokenizers.tgt.size)}


def _n_characters(pair: tuple[str, str]) -> int:
    return len(pair[0]) + len(pair[1])


def _encode(texts: list[tuple[str, str]], tokenizers: Tokenizers, *, max_length: int) -> Iterator[PairOfIds]:
    """Encode each text; an overlong text is encoded only as far as needed to detect it."""
    src_rows = tokenizers.src.encode_batch([src for src, _ in texts], max_tokens=max_length)
    tgt_rows = tokenizers.tgt.encode_batch([tgt for _, tgt in texts], max_tokens=max_length)
    return zip(src_rows, tgt_rows, strict=True)


class PairDropout:
    """Sample several encodings of each pair by BPE-dropout, on both sides. Provilkov et al. (2020), section 3.2.

    A target tokenizer without merges (the tokens of trees) has one encoding, which is repeated.
    """

    def __init__(self, tokenizers: Tokenizers, *, p_drop: float, n_encodings: int, seed: int) -> None:
        self.n_encodings = n_encodings
        self._src = BpeDropout(tokenizers.src, p_drop=p_drop, seed=2 * seed)
        has_merges = tokenizers.tgt.merges is not None
        self._tgt = BpeDropout(tokenizers.tgt, p_drop=p_drop, seed=2 * seed + 1) if has_merges else None

    def draw(self, texts: list[tuple[str, str]], plain: list[PairOfIds], *, max_length: int) -> list[PairOfIds]:
        """Return ``n_encodings`` rows for each pair, in order; ``plain`` where a sample is too long."""
        src_samples = self._src.sample([src for src, _ in texts], self.n_encodings)
        if self._tgt is not None:
            tgt_samples = self._tgt.sample([tgt for _, tgt in texts], self.n_encodings)
        else:
            tgt_samples = [[tgt_ids] * self.n_encodings for _, tgt_ids in plain]
        return [
            sample if max(map(len, sample)) < max_length else fallback
            for src_ids, tgt_ids, fallback in zip(src_samples, tgt_samples, plain, strict=True)
            for sample in zip(src_ids, tgt_ids, strict=True)
        ]
