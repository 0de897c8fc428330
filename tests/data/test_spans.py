"""Span corruption: it inverts, has the announced lengths, and follows from seed, epoch and segment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_stores import write_documents
from transduce.data import Batch, open_store
from transduce.data.span_batches import SpanBatches
from transduce.data.spans import corrupt, restored, span_counts, spans_of
from transduce.text import BOS_ID, EOS_ID, LANGUAGE_MODEL_TOKENS, byte_tokenizer
from transduce.text.documents import DocumentCodec

TOKENIZER = byte_tokenizer(extra_tokens=LANGUAGE_MODEL_TOKENS)
SENTINELS = TOKENIZER.mask_and_sentinel_ids[1:]
DOCUMENTS = [["one", "two three"], ["x"], ["a rather long line, longer than a segment " * 3, "and another"]]


def batches(folder: Path, *, max_length: int = 20, seed: int = 1) -> SpanBatches:
    if not folder.exists():
        write_documents(folder, DOCUMENTS, TOKENIZER)
    store = open_store(folder)
    return SpanBatches(store, sentinels=SENTINELS, max_length=max_length, max_tokens=128, seed=seed)


def pairs_of(batch: Batch) -> list[tuple[list[int], list[int]]]:
    """The sources and targets of a batch, without BOS and EOS."""
    pairs, start = [], 0
    for src, tgt_in in zip(batch.src_BS.tolist(), batch.tgt_in_BT.tolist(), strict=True):
        source, read = [id for id in src if id], [id for id in tgt_in if id]
        assert (source[-1], read[0]) == (EOS_ID, BOS_ID)
        written = batch.tgt_out_N[start : start + len(read)].tolist()
        assert written == [*read[1:], EOS_ID]
        start += len(read)
        pairs.append((source[:-1], read[1:]))
    return pairs


@given(st.integers(1, 3000), st.integers(0, 50))
def test_it_inverts(n_tokens: int, seed: int) -> None:
    ids = np.random.default_rng(seed).integers(4, 200, n_tokens)
    source, target = corrupt(ids, SENTINELS, np.random.default_rng(seed))
    assert restored(source, target, SENTINELS) == ids.tolist()
    n_removed, n_spans = (int(each) for each in span_counts(np.array(n_tokens), max_spans=99))
    assert len(source) == n_tokens - n_removed + n_spans
    assert len(target) == n_removed + n_spans + 1
    used = [id for id in source if id in set(SENTINELS)]
    assert used == list(SENTINELS[:n_spans])
    spans = spans_of(target, set(SENTINELS))
    assert all(spans[id] for id in used)  # no span is empty
    assert target[-1] == SENTINELS[n_spans]


def test_shares_of_t5() -> None:
    ids = np.arange(1000, 1600)
    lengths = []
    for seed in range(200):
        _source, target = corrupt(ids, SENTINELS, np.random.default_rng(seed))
        lengths += [len(span) for span in spans_of(target, set(SENTINELS)).values() if span]
        assert sum(id >= 1000 for id in target) == 90  # 15 %
    assert np.mean(lengths) == pytest.approx(3.0)
    assert np.mean(np.array(lengths) == 1) == pytest.approx(1 / 3, abs=0.03)  # nearly geometric: random divisions


@pytest.mark.parametrize("max_length", [1, 2, 20, 100])
def test_batches_have_the_planned_lengths(tmp_path: Path, max_length: int) -> None:
    source, codec = batches(tmp_path / "store", max_length=max_length), DocumentCodec(TOKENIZER)
    whole = sorted(id for document in DOCUMENTS for id in codec.encode(document))
    for epoch in range(3):
        read = []
        for index in range(source.n_batches(epoch)):
            batch = source.batch(epoch, index)
            assert source.n_tokens(epoch, index) == (batch.n_src_tokens, batch.n_tgt_tokens)
            for src, tgt in pairs_of(batch):
                read += restored(src, tgt, SENTINELS)
        assert sorted(read) == whole


def test_spans_follow_from_seed_and_epoch(tmp_path: Path) -> None:
    def read(source: SpanBatches, epoch: int) -> list[tuple[list[int], list[int]]]:
        return sorted(pair for index in range(source.n_batches(epoch)) for pair in pairs_of(source.batch(epoch, index)))

    one, again, other = (batches(tmp_path / "store", seed=seed) for seed in (1, 1, 2))
    assert read(one, 0) == read(again, 0)
    assert read(one, 0) != read(one, 1)
    assert read(one, 0) != read(other, 0)
