"""Stores of documents: segments cover each document once, see no other, and follow from seed and epoch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_stores import write_documents
from transduce.data import open_store
from transduce.data.documents import CausalBatches, cut_into_segments
from transduce.errors import DataError
from transduce.text import BOS_ID, EOS_ID, PAD_ID, byte_tokenizer, normalise
from transduce.text.documents import DocumentCodec

TOKENIZER = byte_tokenizer()
DOCUMENTS = [["one", "two three"], ["x"], ["a rather long line, longer than a segment", "and another"]]


def batches(folder: Path, *, max_length: int = 8, seed: int = 1) -> CausalBatches:
    if not folder.exists():
        write_documents(folder, DOCUMENTS, TOKENIZER)
    store = open_store(folder)
    return CausalBatches(store, max_length=max_length, max_tokens=64, seed=seed)


def segments_read(source: CausalBatches, epoch: int) -> list[tuple[list[int], list[int]]]:
    """The inputs and targets of each segment of an epoch."""
    read = []
    for index in range(source.n_batches(epoch)):
        batch, start = source.batch(epoch, index), 0
        for row in batch.ids_BT.tolist():
            inputs = [id for id in row if id != PAD_ID]
            read.append((inputs, batch.targets_N.tolist()[start : start + len(inputs)]))
            start += len(inputs)
        assert start == len(batch.targets_N) == source.n_tokens(epoch, index)[1]
    return read


def whole_documents() -> list[list[int]]:
    codec = DocumentCodec(TOKENIZER)
    return [[BOS_ID, *codec.encode(document), EOS_ID] for document in DOCUMENTS]


@pytest.mark.parametrize("max_length", [1, 2, 8, 1000])
def test_an_epoch_predicts_every_token_once(tmp_path: Path, max_length: int) -> None:
    source = batches(tmp_path / "store", max_length=max_length)
    for epoch in range(3):
        read = segments_read(source, epoch)
        assert max(len(inputs) for inputs, _ in read) <= max_length
        predicted = sorted(id for _, targets in read for id in targets)
        assert predicted == sorted(id for document in whole_documents() for id in document[1:])
        for inputs, targets in read:  # each segment is a piece of one document
            piece = [*inputs, targets[-1]]
            assert inputs[1:] == targets[:-1]
            assert any(
                piece == document[start : start + len(piece)]
                for document in whole_documents()
                for start in range(len(document))
            )


def test_cuts_follow_from_seed_and_epoch(tmp_path: Path) -> None:
    one, again, other = (batches(tmp_path / "store", seed=seed) for seed in (1, 1, 2))
    assert segments_read(one, 0) == segments_read(again, 0)
    assert segments_read(one, 1) == segments_read(again, 1)
    assert segments_read(one, 0) != segments_read(one, 1)
    assert segments_read(one, 0) != segments_read(other, 0)
    whole = [one.batch(0, index).ids_BT for index in range(one.n_batches(0))]
    for index, ids in enumerate(whole):  # parts of a batch are its rows
        parts = [one.batch(0, index, part=part, n_parts=2) for part in range(2) if one.n_rows(0, index) > part]
        assert sum(len(part.ids_BT) for part in parts) == len(ids)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=5), st.integers(1, 20), st.integers(0, 3))
def test_segments_are_consecutive_and_complete(lengths: list[int], max_length: int, epoch: int) -> None:
    rows = np.arange(len(lengths))
    segments = cut_into_segments(rows, np.array(lengths, np.int32) + 1, max_length=max_length, seed=3, epoch=epoch)
    for row, length in enumerate(lengths):
        of_row = segments.row_I == row
        starts, sizes = segments.start_I[of_row], segments.length_I[of_row]
        assert starts[0] == 0
        assert (starts[1:] == (starts + sizes)[:-1]).all()
        assert starts[-1] + sizes[-1] == length + 1
        assert 0 < sizes.min() <= sizes.max() <= max_length


def test_documents_without_text_are_left_out(tmp_path: Path) -> None:
    summary = write_documents(tmp_path / "store", [["a"], ["", ""], ["b"]], TOKENIZER)
    assert (summary.n_examples, summary.n_empty) == (2, 1)
    with pytest.raises(DataError):
        write_documents(tmp_path / "empty", [[""]], TOKENIZER)


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=4))
def test_documents_there_and_back(lines: list[str]) -> None:
    codec = DocumentCodec(TOKENIZER)
    ids = codec.encode(lines)
    text = "".join(f"{normalise(line)}\n" for line in lines)
    assert codec.decode(ids) == text
    assert codec.n_bytes(ids) == len(text.encode())
