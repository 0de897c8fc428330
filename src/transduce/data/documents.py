"""Stores of documents, and batches of segments of them for causal language models.

A store has a column ``text`` with a document in each row. An epoch cuts every document into segments of at most a fixed
length, at places that depend on the seed, the epoch and the row; a segment is a row of a batch, so no position sees
another document.

Shapes: R rows of the store, I segments of an epoch, B rows of a batch, T positions, N real positions of all rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.data.batch_source import BatchOptions, BatchT, StoreBatches
from transduce.data.collate import pad_rows
from transduce.data.sampling import epoch_rows
from transduce.data.store import LeftOut, Store
from transduce.text import BOS_ID, EOS_ID
from transduce.text.documents import DocumentCodec

__all__ = [
    "TEXT", "CausalBatches", "SegmentBatches", "Segments", "TextBatch", "cut_into_segments",
    "document_rows",
]  # fmt: skip

TEXT = "text"  # the column


def document_rows(lines: Sequence[str], codec: DocumentCodec, left_out: LeftOut) -> Iterator[dict[str, list[int]]]:
    """Yield the row of a document, none for one without text; ``left_out`` counts it."""
    ids = codec.encode(lines)
    if len(ids) > len(lines):
        yield {TEXT: ids}
    else:
        left_out.n_empty += 1


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The segments of an epoch: the row of the store, the first position in the document, the number of positions."""

    row_I: NDArray[np.int64]
    start_I: NDArray[np.int64]
    length_I: NDArray[np.int32]


def cut_into_segments(
    rows: NDArray[np.int64],
    lengths_R: NDArray[np.int32],
    *,
    max_length: int,
    seed: int,
    epoch: int,
    shortest_first: int = 1,
) -> Segments:
    """Cut documents into segments of at most ``max_length`` positions; a pure function, the same on every machine.

    The first segment of a document has a random length, at least ``shortest_first`` positions unless the document ends
    before, so that each epoch has other cuts.

    >>> segments = cut_into_segments(np.array([0]), np.array([10]), max_length=4, seed=1, epoch=0)
    >>> list(zip(segments.start_I.tolist(), segments.length_I.tolist()))
    [(0, 3), (3, 4), (7, 3)]
    """
    random = np.random.default_rng([seed, epoch, 2])
    n_positions = lengths_R[rows].astype(np.int64)
    first = np.where(
        n_positions > max_length, random.integers(shortest_first, max_length + 1, size=len(rows)), n_positions
    )
    n_segments = 1 + -(-(n_positions - first) // max_length)
    row_I = np.repeat(rows, n_segments)
    number_I = np.arange(len(row_I)) - np.repeat(np.cumsum(n_segments) - n_segments, n_segments)
    first_I, n_positions_I = np.repeat(first, n_segments), np.repeat(n_positions, n_segments)
    start_I = np.where(number_I == 0, 0, first_I + (number_I - 1) * max_length)
    end_I = np.minimum(first_I + number_I * max_length, n_positions_I)
    return Segments(row_I, start_I, (end_I - start_I).astype(np.int32))


class SegmentBatches(StoreBatches[BatchT], ABC):
    """Batches of segments of a store of documents; subclasses make the batches from the ids of segments."""

    has_bos: ClassVar[bool] = True  # whether a document is read with BOS before it
    shortest_first: ClassVar[int] = 1  # positions of a document's first segment, at least

    def __init__(self, store: Store, *, max_length: int, **options: Unpack[BatchOptions]) -> None:
        self._lengths_R = store.columns[TEXT].lengths_R + np.int32(self.has_bos)
        longest_R = np.minimum(self._lengths_R, np.int32(max_length))
        super().__init__(store, src_lengths=longest_R, tgt_lengths=longest_R, **options)
        self.max_length = max_length
        self._cut: tuple[int, Segments] | None = None

    def segments(self, epoch: int) -> Segments:
        """Return the segments of an epoch."""
        if self._cut is None or self._cut[0] != epoch:
            n_documents = list(self.store.summary.n_examples_of.values())
            rows = epoch_rows(n_documents, self._weights, n_encodings=1, seed=self.seed, epoch=epoch)
            cut = cut_into_segments(
                rows,
                self._lengths_R,
                max_length=self.max_length,
                seed=self.seed,
                epoch=epoch,
                shortest_first=self.shortest_first,
            )
            self._cut = epoch, cut
        return self._cut[1]

    @abstractmethod
    def _collate_rows(self, epoch: int, rows_B: NDArray[np.int64]) -> BatchT:
        """Make the batch of some segments of an epoch."""

    def _lengths(self, epoch: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        length_I = self.segments(epoch).length_I
        return length_I, length_I

    def _rows(self, epoch: int) -> NDArray[np.int64]:
        return np.arange(len(self.segments(epoch).row_I))

    def _ids_of_segments(
        self, epoch: int, items_B: NDArray[np.int64], *, has_next: bool = False
    ) -> list[NDArray[np.int64]]:
        """Return the ids at the positions of each segment; with ``has_next`` also the one after them, at last EOS."""
        segments, column = self.segments(epoch), self.store.columns[TEXT]
        documents_B, start_B = segments.row_I[items_B], segments.start_I[items_B]
        end_B = start_B + segments.length_I[items_B] + has_next
        n_tokens_B = column.lengths_R[documents_B].astype(np.int64)
        first_B, last_B = np.maximum(start_B - self.has_bos, 0), end_B - self.has_bos  # in the document's tokens
        parts = column.gather_parts(documents_B, first_B, np.minimum(last_B, n_tokens_B) - first_B)
        ids_of_segments = np.split(parts.values_N.astype(np.int64), np.cumsum(parts.lengths_B)[:-1])
        has_bos_B, has_eos_B = (start_B == 0) & self.has_bos, last_B > n_tokens_B
        return [
            np.concatenate(([BOS_ID] * has_bos, ids, [EOS_ID] * has_eos)).astype(np.int64)
            for ids, has_bos, has_eos in zip(ids_of_segments, has_bos_B.tolist(), has_eos_B.tolist(), strict=True)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class TextBatch:
    """Inputs of a language model, and the targets of some or all of their real positions."""

    ids_BT: Tensor  # inputs, padded on the right
    targets_N: Tensor
    # Numbers of the positions that have targets, among the real positions of all rows; None: all have.
    positions_N: Tensor | None = None

    def tensors(self) -> Mapping[str, Tensor]:
        """Return all tensors by their names in files."""
        tensors = {"ids_BT": self.ids_BT, "targets_N": self.targets_N}
        return tensors if self.positions_N is None else tensors | {"positions_N": self.positions_N}

    def to(self, device: torch.device | str) -> TextBatch:
        """Copy the batch to ``device``."""
        positions_N = None if self.positions_N is None else self.positions_N.to(device)
        ids_BT, targets_N = self.ids_BT.to(device), self.targets_N.to(device)
        return replace(self, ids_BT=ids_BT, targets_N=targets_N, positions_N=positions_N)


class CausalBatches(SegmentBatches[TextBatch]):
    """Batches for causal language models: each position has the next token of the document, or EOS, as its target."""

    def _collate_rows(self, epoch: int, rows_B: NDArray[np.int64]) -> TextBatch:
        read = self._ids_of_segments(epoch, rows_B, has_next=True)
        targets_N = torch.from_numpy(np.concatenate([ids[1:] for ids in read]))
        return TextBatch(pad_rows([ids[:-1] for ids in read]), targets_N).to(self._device)
