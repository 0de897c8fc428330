"""Sentence pairs as a store: normalised and encoded, the columns ``src`` and ``tgt``."""

# N rows in the store

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

N_PAIRS_AT_A_TIME = 8192  # at most: the texts and ids of so many are in memory at a time

PairOfIds = tuple[list[int], list[int]]


@dataclass(frozen=True, slots=True, eq=False)
class PairStore(Store):
    """A store of pairs open for reading. Ids are without end symbols, lengths with them."""

    src_lengths: NDArray[np.int32]  # (N,)
    tgt_lengths: NDArray[np.int32]  # (N,)

    def pair(self, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """The source and target ids of one row, copied."""
        return self.columns["src"].row(row), self.columns["tgt"].row(row)


def open_pairs(folder: Path, tokenizers: Tokenizers | None = None) -> PairStore:
    """Check every file of the store of pairs at ``folder`` and open it for reading.

    Raises DataError if a file is missing or corrupt, or if the store was not made with ``tokenizers``.
    """
    fingerprint = None if tokenizers is None else tokenizers.fingerprint
    store = open_store(folder, _columns(tokenizers), tokenizer_fingerprint=fingerprint)
    src_lengths, tgt_lengths = (store.columns[side].lengths_N + np.int32(1) for side in ("src", "tgt"))
    return PairStore(folder, store.summary, store.columns, src_lengths, tgt_lengths)


def write_pairs(
    folder: Path,
    corpora: Mapping[str, Iterable[tuple[str, str]]],
    tokenizers: Tokenizers,
    *,
    max_length: int,
    dropout: PairDropout | None = None,
) -> StoreSummary:
    """Normalise and encode the pairs of each corpus into a new store at ``folder``.

    The pairs are read as a stream; memory does not grow with their number. With ``dropout``, a pair has several rows,
    all drawn; whether it is too long, its plain encoding decides, which also stands in for a draw that is too long.
    The folder appears whole or not at all.

    Raises DataError if no pair can be kept, or if ``folder`` is there already and not empty.

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
        for chunk in chunks(pairs, N_PAIRS_AT_A_TIME, _n_characters):
            normalised = [(normalise(src), normalise(tgt)) for src, tgt in chunk]
            texts = [pair for pair in normalised if all(pair)]
            plain = list(_encode(texts, tokenizers, max_length=max_length))
            is_kept = [max(map(len, pair)) < max_length for pair in plain]  # <: the end symbol is not stored
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
    """All of the texts that may be kept; of one that is too long, enough to know it."""
    src_rows = tokenizers.src.encode_batch([src for src, _ in texts], max_tokens=max_length)
    tgt_rows = tokenizers.tgt.encode_batch([tgt for _, tgt in texts], max_tokens=max_length)
    return zip(src_rows, tgt_rows, strict=True)


class PairDropout:
    """Several random encodings of each pair by BPE-dropout, on both sides. Provilkov et al. (2020), section 3.2.

    A side that is not spelled in merged pairs, the symbols of trees, stays as it is.
    """

    def __init__(self, tokenizers: Tokenizers, *, p_drop: float, n_encodings: int, seed: int) -> None:
        self.n_encodings = n_encodings
        self._src = BpeDropout(tokenizers.src, p_drop=p_drop, seed=2 * seed)
        has_merges = tokenizers.tgt.merges is not None
        self._tgt = BpeDropout(tokenizers.tgt, p_drop=p_drop, seed=2 * seed + 1) if has_merges else None

    def draw(self, texts: list[tuple[str, str]], plain: list[PairOfIds], *, max_length: int) -> list[PairOfIds]:
        """``n_encodings`` rows for each pair, one pair after the other; ``plain`` where a draw is too long."""
        src_draws = self._src.sample([src for src, _ in texts], self.n_encodings)
        if self._tgt is not None:
            tgt_draws = self._tgt.sample([tgt for _, tgt in texts], self.n_encodings)
        else:
            tgt_draws = [[tgt_ids] * self.n_encodings for _, tgt_ids in plain]
        return [
            drawn if max(map(len, drawn)) < max_length else fallback
            for src_ids, tgt_ids, fallback in zip(src_draws, tgt_draws, plain, strict=True)
            for drawn in zip(src_ids, tgt_ids, strict=True)
        ]
