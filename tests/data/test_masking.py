"""Masking: the chosen tokens, what replaces them, and that all of it follows from seed, epoch and segment."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_stores import write_documents
from transduce.data import open_store
from transduce.data.masking import MaskedBatches, mask_tokens, n_chosen
from transduce.text import BOS_ID, LANGUAGE_MODEL_TOKENS, PAD_ID, byte_tokenizer
from transduce.text.documents import DocumentCodec

TOKENIZER = byte_tokenizer(extra_tokens=LANGUAGE_MODEL_TOKENS)
MASK_ID = TOKENIZER.mask_and_sentinel_ids[0]
DOCUMENTS = [["one", "two three"], ["x"], ["a rather long line, longer than a segment", "and another"]]


def batches(folder: Path, *, max_length: int = 12, max_tokens: int = 64, seed: int = 1) -> MaskedBatches:
    if not folder.exists():
        write_documents(folder, DOCUMENTS, TOKENIZER)
    store = open_store(folder)
    return MaskedBatches(store, mask_id=MASK_ID, max_length=max_length, max_tokens=max_tokens, seed=seed)


def segments_read(source: MaskedBatches, epoch: int) -> list[tuple[tuple[int, ...], tuple[tuple[int, int], ...]]]:
    """The inputs of each segment of an epoch, and (position, target) of each chosen token, sorted."""
    read = []
    for index in range(source.n_batches(epoch)):
        batch = source.batch(epoch, index)
        assert batch.positions_N is not None
        assert len(batch.targets_N) == len(batch.positions_N) == source.n_tokens(epoch, index)[1]
        row_of, position_of, rows = [], [], batch.ids_BT.tolist()
        for row, ids in enumerate(rows):
            n_real = sum(id != PAD_ID for id in ids)
            row_of += [row] * n_real
            position_of += range(n_real)
        targets: list[list[tuple[int, int]]] = [[] for _ in rows]
        for number, target in zip(batch.positions_N.tolist(), batch.targets_N.tolist(), strict=True):
            targets[row_of[number]].append((position_of[number], target))
        read += [
            (tuple(id for id in ids if id != PAD_ID), tuple(each)) for ids, each in zip(rows, targets, strict=True)
        ]
    return sorted(read)


@given(st.integers(1, 200), st.integers(0, 100))
def test_a_segment_keeps_what_is_not_chosen(n_tokens: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    ids = np.concatenate(([BOS_ID], random.integers(4, MASK_ID, n_tokens)))
    inputs, chosen = mask_tokens(ids, MASK_ID, np.random.default_rng(seed))
    assert len(chosen) == len(set(chosen.tolist())) == n_chosen(np.array(n_tokens))
    assert 0 not in chosen  # BOS
    others = np.setdiff1d(np.arange(len(ids)), chosen)
    assert (inputs[others] == ids[others]).all()
    assert ((inputs[chosen] == MASK_ID) | ((inputs[chosen] >= 4) & (inputs[chosen] < MASK_ID))).all()


def test_shares_of_bert() -> None:
    ids = np.full(20_000, 10)
    inputs, chosen = mask_tokens(ids, MASK_ID, np.random.default_rng(1))
    n, kinds = len(chosen), Counter(inputs[chosen].tolist())
    assert n == 3_000
    assert kinds[MASK_ID] / n == pytest.approx(0.8, abs=0.03)
    assert kinds[10] / n == pytest.approx(0.1, abs=0.02)
    assert len(kinds) > 100  # the rest are random tokens


@pytest.mark.parametrize("max_length", [2, 3, 12, 1000])
def test_every_segment_has_a_target(tmp_path: Path, max_length: int) -> None:
    source = batches(tmp_path / "store", max_length=max_length, max_tokens=max(64, max_length))
    codec = DocumentCodec(TOKENIZER)
    whole = sorted(id for document in DOCUMENTS for id in (BOS_ID, *codec.encode(document)))
    for epoch in range(4):
        read = segments_read(source, epoch)
        assert all(targets for _, targets in read)
        restored = []
        for inputs, targets in read:
            ids = list(inputs)
            for position, target in targets:
                ids[position] = target
            restored += ids
        assert sorted(restored) == whole


def test_masks_follow_from_seed_and_epoch_not_from_batches(tmp_path: Path) -> None:
    one, again, other = (batches(tmp_path / "store", seed=seed) for seed in (1, 1, 2))
    assert segments_read(one, 0) == segments_read(again, 0)
    assert segments_read(one, 0) != segments_read(one, 1)
    assert segments_read(one, 0) != segments_read(other, 0)
    assert segments_read(batches(tmp_path / "store", max_tokens=24), 0) == segments_read(one, 0)
