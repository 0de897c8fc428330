"""Stores of documents, and batches of segments of them for language models.

A store has a column ``text`` with a document in each row. An epoch cuts every document into segments of at most a fixed
length, at places that depend on the seed, the epoch and the row; a segment is a row of a batch, so no position sees
another document. A document is read with BOS before it and EOS after it: a segment's inputs are some of its tokens,
and its targets the tokens that follow them.

Shapes: R rows of the store, I segments of an epoch, B rows of a batch, T positions, N real positions of all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.data.batch_source import StoreBatches
from transduce.data.collate import pad_rows
from transduce.data.columns import Ids
from transduce.data.sampling import epoch_rows
from transduce.data.store import LeftOut, Store, StoreSummary, open_store, write_store
from transduce.text import BOS_ID, EOS_ID, Tokenizer
from transduce.text.documents import DocumentCodec

__all__ = ["SegmentBatches", "Segments", "TextBatch", "cut_into_segments", "open_documents", "write_documents"]

TEXT = "text"  # the column


def write_documents(
    folder: Path, corpora: Mapping[str, Iterable[Sequence[str]]], tokenizer: Tokenizer, *, fingerprint: str
) -> StoreSummary:
    """Encode the documents of each corpus into a new store at ``folder``, written atomically.

    Raises DataError if no document has text, or if ``folder`` exists and is not empty.
    """
    codec, left_out = DocumentCodec(tokenizer), LeftOut()

    def rows(documents: Iterable[Sequence[str]]) -> Iterator[dict[str, list[int]]]:
        for lines in documents:
            ids = codec.encode(lines)
            if len(ids) > len(lines):
                yield {TEXT: ids}
            else:
                left_out.n_empty += 1

    return write_store(
        folder,
        {corpus: rows(documents) for corpus, documents in corpora.items()},
        {TEXT: Ids(vocab_size=tokenizer.size)},
        tokenizer_fingerprint=fingerprint,
        left_out=left_out,
    )


def open_documents(folder: Path, *, fingerprint: str | None = None) -> Store:
    """Check a store of documents and open it. Raises DataError if a file is missing or corrupt."""
    return open_store(folder, tokenizer_fingerprint=fingerprint)


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The segments of an epoch: the row of the store, the first input position, the number of positions."""

    row_I: NDArray[np.int64]
    start_I: NDArray[np.int64]
    length_I: NDArray[np.int32]


def cut_into_segments(
    rows: NDArray[np.int64], lengths_R: NDArray[np.int32], *, max_length: int, seed: int, epoch: int
) -> Segments:
    """Cut documents into segments of at most ``max_length`` inputs; a pure function, the same on every machine.

    A document of n tokens has n + 1 inputs: BOS and its tokens. The first segment of a document is shorter by a random
    number, so that each epoch has other cuts.

    >>> segments = cut_into_segments(np.array([0]), np.array([9]), max_length=4, seed=1, epoch=0)
    >>> list(zip(segments.start_I.tolist(), segments.length_I.tolist()))
    [(0, 3), (3, 4), (7, 3)]
    """
    random = np.random.default_rng([seed, epoch, 2])
    n_inputs = lengths_R[rows].astype(np.int64) + 1
    first = np.where(n_inputs > max_length, random.integers(1, max_length + 1, size=len(rows)), n_inputs)
    n_segments = 1 + -(-(n_inputs - first) // max_length)
    row_I = np.repeat(rows, n_segments)
    number_I = np.arange(len(row_I)) - np.repeat(np.cumsum(n_segments) - n_segments, n_segments)
    first_I, n_inputs_I = np.repeat(first, n_segments), np.repeat(n_inputs, n_segments)
    start_I = np.where(number_I == 0, 0, first_I + (number_I - 1) * max_length)
    end_I = np.minimum(first_I + number_I * max_length, n_inputs_I)
    return Segments(row_I, start_I, (end_I - start_I).astype(np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class TextBatch:
    """Segments as inputs of a language model, and its targets."""

    ids_BT: Tensor  # inputs, padded on the right
    targets_N: Tensor  # the token after each real input

    def tensors(self) -> Mapping[str, Tensor]:
        """Return all tensors by their names in files."""
        return {"ids_BT": self.ids_BT, "targets_N": self.targets_N}

    def to(self, device: torch.device | str) -> TextBatch:
        """Copy the batch to ``device``."""
        return replace(self, ids_BT=self.ids_BT.to(device), targets_N=self.targets_N.to(device))


class SegmentBatches(StoreBatches[TextBatch]):
    """Batches of segments of a store of documents, for causal language models."""

    def __init__(
        self,
        store: Store,
        *,
        max_length: int,
        max_tokens: int,
        seed: int,
        device: torch.device,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        lengths_R = np.minimum(store.columns[TEXT].lengths_R + np.int32(1), np.int32(max_length))
        super().__init__(
            store,
            lambda items_B: self._collate_rows(0, items_B),
            src_lengths=lengths_R,
            tgt_lengths=lengths_R,
            max_tokens=max_tokens,
            seed=seed,
            weights=weights,
        )
        self.max_length, self._device = max_length, device
        self._cut: tuple[int, Segments] | None = None

    def segments(self, epoch: int) -> Segments:
        """Return the segments of an epoch."""
        if self._cut is None or self._cut[0] != epoch:
            n_documents = list(self.store.summary.n_pairs_of.values())
            rows = epoch_rows(n_documents, self._weights, n_encodings=1, seed=self.seed, epoch=epoch)
            lengths_R = self.store.columns[TEXT].lengths_R
            cut = cut_into_segments(rows, lengths_R, max_length=self.max_length, seed=self.seed, epoch=epoch)
            self._cut = epoch, cut
        return self._cut[1]

    def _lengths(self, epoch: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        length_I = self.segments(epoch).length_I
        return length_I, length_I

    def _rows(self, epoch: int) -> NDArray[np.int64]:
        return np.arange(len(self.segments(epoch).row_I))

    def _collate_rows(self, epoch: int, rows_B: NDArray[np.int64]) -> TextBatch:
        segments, column = self.segments(epoch), self.store.columns[TEXT]
        documents_B, start_B = segments.row_I[rows_B], segments.start_I[rows_B]
        end_B = start_B + segments.length_I[rows_B]  # of the inputs: 0 is BOS, n is the last of n tokens
        n_tokens_B = column.lengths_R[documents_B].astype(np.int64)
        first_B = np.maximum(start_B - 1, 0)
        parts = column.gather_parts(documents_B, first_B, np.minimum(end_B, n_tokens_B) - first_B)
        inputs, targets = [], []
        ids_of_rows = np.split(parts.values_N.astype(np.int64), np.cumsum(parts.lengths_B)[:-1])
        for ids, is_first, is_last in zip(
            ids_of_rows, (start_B == 0).tolist(), (end_B > n_tokens_B).tolist(), strict=True
        ):
            read = np.concatenate(([BOS_ID] * is_first, ids, [EOS_ID] * is_last)).astype(np.int64)
            inputs.append(read[:-1])
            targets.append(read[1:])
        return TextBatch(pad_rows(inputs), torch.from_numpy(np.concatenate(targets))).to(self._device)
