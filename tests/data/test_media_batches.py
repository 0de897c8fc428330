"""Batches of features: padding, lengths, and masks that follow from seed, epoch and row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from transduce.data import Ids, Store, Vectors, open_store, write_store
from transduce.data.media import MediaBatches, masked, padded_features
from transduce.text import byte_tokenizer


@pytest.fixture
def store(tmp_path: Path) -> Store:
    tokenizer, random = byte_tokenizer(), np.random.default_rng(1)
    columns = {"features": Vectors(width=6, dtype="uint8"), "text": Ids(vocab_size=tokenizer.size)}
    rows = [
        {"features": random.integers(1, 256, (length, 6)), "text": tokenizer.encode("a" * words)}
        for length, words in zip((9, 30, 12, 31, 5), (3, 2, 4, 1, 2), strict=True)
    ]
    write_store(tmp_path / "store", {"images": rows}, columns)
    return open_store(tmp_path / "store")


def batches(store: Store, *, n_masks: int = 0, seed: int = 1) -> MediaBatches:
    return MediaBatches(
        store, stride=4, n_positions=lambda n: -(-n // 4), max_tokens=16, seed=seed,
        n_masks=n_masks,
    )  # fmt: skip


def test_a_batch_has_features_and_the_lengths_of_positions(store: Store) -> None:
    source, seen = batches(store), []
    for index in range(source.n_batches(0)):
        batch = source.batch(0, index)
        assert batch.lengths is not None
        assert batch.src_BS.dtype == torch.uint8
        assert batch.src_BS.shape[1:] == (4 * int(batch.lengths[0].max()), 6)
        assert (batch.n_src_tokens, batch.n_tgt_tokens) == source.n_tokens(0, index)
        for place, row in enumerate(batch.rows):
            features = store.columns["features"].row(row)
            np.testing.assert_array_equal(batch.src_BS[place, : len(features)].numpy(), features)
            assert not batch.src_BS[place, len(features) :].any()
            assert batch.lengths[0][place] == -(-len(features) // 4)
        seen += batch.rows
    assert sorted(seen) == [0, 1, 2, 3, 4]


def test_masks_follow_from_seed_epoch_and_row(store: Store) -> None:
    def content(source: MediaBatches, epoch: int) -> dict[int, bytes]:
        found = {}
        for index in range(source.n_batches(epoch)):
            batch = source.batch(epoch, index)
            found |= {row: batch.src_BS[place].numpy().tobytes().rstrip(b"\0") for place, row in enumerate(batch.rows)}
        return found

    assert content(batches(store, n_masks=3), 2) == content(batches(store, n_masks=3), 2)
    assert content(batches(store, n_masks=3), 2) != content(batches(store, n_masks=3), 3)
    assert content(batches(store, n_masks=3), 2) != content(batches(store, n_masks=3, seed=2), 2)
    assert content(batches(store, n_masks=3), 2) != content(batches(store), 2)


def test_masks_are_runs_of_columns_and_rows() -> None:
    features = np.ones((50, 20), np.float16)
    for seed in range(20):
        result = masked(features, 1, np.random.default_rng(seed))
        columns, rows = (result == 0).all(axis=1), (result == 0).all(axis=0)
        assert columns.sum() <= 10
        assert rows.sum() <= 4
        np.testing.assert_array_equal(result == 0, columns[:, None] | rows)
        assert np.abs(np.diff(columns.astype(int))).sum() <= 2
    assert features.all()


def test_rows_are_padded_to_a_multiple_of_the_stride() -> None:
    padded = padded_features([np.ones((5, 2), np.float16)], stride=4)
    assert (padded.shape, padded.dtype) == ((1, 8, 2), torch.float16)
