"""Pair stores: normalised, tokenized sentence pairs in the columns ``src`` and ``tgt``.

Shapes: R rows of the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.data.arrays import ArrayFile
from transduce.data.columns import Ids, column_files
from transduce.data.store import Block, LeftOut, Store, StoreSummary, open_store, read_summary, write_blocks
from transduce.text import Tokenizers
from transduce.text.chunks import chunks
from transduce.text.encoding_workers import ChunkEncoder, chunk_encoder
from transduce.text.pair_encoding import PairSampling, TextPair

__all__ = ["PairStore", "excess_of_targets", "open_pairs", "write_pairs"]

PAIRS_PER_CHUNK = 2048  # texts and ids in memory, for each worker twice
ROWS_PER_PART = 1 << 20


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


def excess_of_targets(folder: Path, n_extra: int) -> tuple[int, int]:
    """Return the number of rows whose target has over ``n_extra`` tokens more than its source, and the largest excess.

    Only the offsets of the pair store at ``folder`` are read, a part at a time.
    """
    n_rows, kinds = read_summary(folder).n_rows, _columns(None)
    paths = [column_files(folder, side, kinds[side])[1] for side in ("src", "tgt")]
    src, tgt = (ArrayFile(path, (np.int64,), (n_rows + 1,), "offsets") for path in paths)
    n_longer, largest = 0, 0
    for start in range(0, n_rows, ROWS_PER_PART):
        part = np.arange(start, min(start + ROWS_PER_PART, n_rows) + 1)
        excess_R = np.diff(tgt.take(part)) - np.diff(src.take(part))
        n_longer += int((excess_R > n_extra).sum())
        largest = max(largest, int(excess_R.max()))
    return n_longer, largest


def write_pairs(
    folder: Path,
    corpora: Mapping[str, Iterable[TextPair]],
    tokenizers: Tokenizers,
    *,
    max_length: int,
    sampling: PairSampling | None = None,
    n_workers: int = 1,
) -> StoreSummary:
    """Normalise and encode the pairs of each corpus into a new store at ``folder``, written atomically.

    The pairs are streamed in constant memory. With ``sampling``, each pair has several sampled encodings. Pairs are
    filtered by the length of their deterministic encoding, which also replaces a sample that is too long. With several
    ``n_workers``, so many processes encode; the files are the same for every number.

    Raises DataError if no pair is left, or if ``folder`` exists and is not empty.

    >>> import tempfile
    >>> from transduce.text import train_bpe
    >>> tokenizer = train_bpe(["a dog"], vocab_size=260)
    >>> pairs = [("a dog", "ein Hund"), ("", "leer"), ("a cat", "eine Katze")]
    >>> folder = Path(tempfile.mkdtemp()) / "store"
    >>> summary = write_pairs(folder, {"pets": pairs}, Tokenizers(tokenizer, tokenizer), max_length=10)
    >>> summary.n_read, summary.n_examples, summary.n_empty, summary.n_too_long
    (3, 1, 1, 1)
    """
    left_out = LeftOut()

    def blocks(pairs: Iterable[TextPair], encoder: ChunkEncoder) -> Iterator[Block]:
        for encoded in encoder.encode(chunks(pairs, PAIRS_PER_CHUNK, _n_characters)):
            left_out.n_empty += encoded.n_empty
            left_out.n_too_long += encoded.n_too_long
            yield {"src": encoded.src, "tgt": encoded.tgt}

    with chunk_encoder(tokenizers, max_length=max_length, sampling=sampling, n_workers=n_workers) as encoder:
        return write_blocks(
            folder,
            {corpus: blocks(pairs, encoder) for corpus, pairs in corpora.items()},
            _columns(tokenizers),
            tokenizer_fingerprint=tokenizers.fingerprint,
            max_length=max_length,
            n_encodings=1 if sampling is None else sampling.n_encodings,
            left_out=left_out,
        )


def _columns(tokenizers: Tokenizers | None) -> dict[str, Ids]:
    if tokenizers is None:
        return {"src": Ids(vocab_size=None), "tgt": Ids(vocab_size=None)}
    return {"src": Ids(vocab_size=tokenizers.src.size), "tgt": Ids(vocab_size=tokenizers.tgt.size)}


def _n_characters(pair: tuple[str, str]) -> int:
    return len(pair[0]) + len(pair[1])
