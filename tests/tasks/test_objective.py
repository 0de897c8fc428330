"""The batches of a store, epoch by epoch."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from transduce.data import PairBatches, PairStore, open_pairs, write_pairs
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Tokenizers, train_bpe

PAIRS = [(f"dog {number} runs", f"Hund {number} läuft schnell und weit") for number in range(40)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> PairStore:
    tokenizer = train_bpe([text for pair in PAIRS for text in pair], vocab_size=300)
    folder = tmp_path_factory.mktemp("batches") / "store"
    write_pairs(folder, {"text": PAIRS}, Tokenizers(tokenizer, tokenizer), max_length=100)
    return open_pairs(folder)


def read_in(batches: PairBatches, store: PairStore, epoch: int) -> Counter[tuple[int, bool]]:
    """Count how often an epoch reads each row, and whether reversed; checks the reported batch sizes."""
    counts: Counter[tuple[int, bool]] = Counter()
    for index in range(batches.n_batches(epoch)):
        batch = batches.batch(epoch, index)
        assert batches.n_rows(epoch, index) == len(batch.rows)
        assert batches.n_tokens(epoch, index) == (batch.n_src_tokens, batch.n_tgt_tokens)
        assert max(batch.src_BS.numel(), batch.tgt_in_BT.numel()) <= batches.max_tokens
        for row, src_S, tgt_T in zip(batch.rows, batch.src_BS, batch.tgt_in_BT, strict=True):
            sides = [ids.tolist() for ids in store.pair(row)]
            assert src_S[-1] in (EOS_ID, PAD_ID)
            assert tgt_T[0] == BOS_ID
            texts = [[int(index) for index in ids if index > EOS_ID] for ids in (src_S, tgt_T)]
            assert texts in (sides, sides[::-1])
            counts[row, texts != sides] += 1
    return counts


def test_both_ways_for_so_many_epochs(store: PairStore) -> None:
    batches = PairBatches(store, max_tokens=200, seed=1, device=torch.device("cpu"), bidirectional_epochs=2)
    first, second, third = (read_in(batches, store, epoch) for epoch in range(3))
    assert first + second == Counter({(row, is_reversed): 1 for row in range(40) for is_reversed in (False, True)})
    assert third == Counter({(row, False): 1 for row in range(40)})
    assert batches.statistics(0).n_src_tokens > batches.statistics(2).n_src_tokens  # German is the longer side


def test_one_way_is_the_default(store: PairStore) -> None:
    batches = PairBatches(store, max_tokens=200, seed=1, device=torch.device("cpu"))
    assert read_in(batches, store, 0) == Counter({(row, False): 1 for row in range(40)})
