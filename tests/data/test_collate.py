from pathlib import Path

import numpy as np
import pytest
import torch

from transduce.data import PairStore, collate, open_pairs, pad_rows, write_pairs
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Tokenizers, train_bpe

PAIRS = [("a dog", "ein Hund"), ("a", "ein"), ("two dogs run", "zwei Hunde laufen hier"), ("hats", "Hüte und Hüte")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> PairStore:
    tokenizer = train_bpe([text for pair in PAIRS for text in pair], vocab_size=270)
    folder = tmp_path_factory.mktemp("collate") / "store"
    write_pairs(folder, {"text": PAIRS}, Tokenizers(tokenizer, tokenizer), max_length=100)
    return open_pairs(folder)


@pytest.mark.parametrize("rows", [[0], [2, 0, 3], [1, 1], [3, 2, 1, 0]])
def test_batch_is_what_a_plain_loop_makes(store: PairStore, rows: list[int]) -> None:
    src_rows, tgt_in_rows, tgt_out = [], [], []
    for row in rows:
        src_ids, tgt_ids = (ids.tolist() for ids in store.pair(row))
        src_rows.append([*src_ids, EOS_ID])
        tgt_in_rows.append([BOS_ID, *tgt_ids])
        tgt_out += [*tgt_ids, EOS_ID]
    n_src, n_tgt = max(map(len, src_rows)), max(map(len, tgt_in_rows))

    batch = collate(store, np.array(rows))

    assert batch.src_BS.tolist() == [row + [PAD_ID] * (n_src - len(row)) for row in src_rows]
    assert batch.tgt_in_BT.tolist() == [row + [PAD_ID] * (n_tgt - len(row)) for row in tgt_in_rows]
    assert batch.tgt_out_N.tolist() == tgt_out
    assert {batch.src_BS.dtype, batch.tgt_in_BT.dtype, batch.tgt_out_N.dtype} == {torch.int64}
    assert batch.n_src_tokens == sum(map(len, src_rows))
    assert batch.n_tgt_tokens == len(tgt_out)
    assert batch.rows == tuple(rows)


@pytest.mark.parametrize("turned", [[False, False, False], [True, True, True], [False, True, True]])
def test_turned_rows_have_their_sides_changed(tmp_path: Path, store: PairStore, turned: list[bool]) -> None:
    rows = [2, 0, 3]
    pairs = [PAIRS[row][::-1] if is_reversed else PAIRS[row] for row, is_reversed in zip(rows, turned, strict=True)]
    tokenizer = train_bpe([text for pair in PAIRS for text in pair], vocab_size=270)
    write_pairs(tmp_path / "store", {"text": pairs}, Tokenizers(tokenizer, tokenizer), max_length=100)
    expected = collate(open_pairs(tmp_path / "store"), [0, 1, 2])
    batch = collate(store, rows, reversed_B=np.array(turned))
    assert all(torch.equal(ids, expected.tensors()[name]) for name, ids in batch.tensors().items())
    assert (batch.n_src_tokens, batch.n_tgt_tokens) == (expected.n_src_tokens, expected.n_tgt_tokens)
    assert batch.rows == tuple(rows)


def test_outputs_align_with_the_real_input_positions(store: PairStore) -> None:
    batch = collate(store, [0, 1, 2, 3])
    is_real_BT = batch.tgt_in_BT != PAD_ID
    assert int(is_real_BT.sum()) == batch.n_tgt_tokens
    continues_N = batch.tgt_in_BT[:, 1:][is_real_BT[:, 1:]]  # the next input is the expected output
    assert batch.tgt_out_N[batch.tgt_out_N != EOS_ID].tolist() == continues_N.tolist()


def test_lengths_of_the_store_are_those_of_the_batch(store: PairStore) -> None:
    batch = collate(store, [0, 1, 2, 3])
    assert (batch.src_BS != PAD_ID).sum(dim=1).tolist() == store.src_lengths.tolist()
    assert (batch.tgt_in_BT != PAD_ID).sum(dim=1).tolist() == store.tgt_lengths.tolist()


def test_a_batch_moves_as_a_whole(store: PairStore) -> None:
    batch = collate(store, [0, 2])
    moved = batch.to("meta")
    assert {moved.src_BS.device.type, moved.tgt_in_BT.device.type, moved.tgt_out_N.device.type} == {"meta"}
    assert (moved.n_src_tokens, moved.n_tgt_tokens, moved.rows) == (batch.n_src_tokens, batch.n_tgt_tokens, (0, 2))


def test_pad_rows_takes_lists_arrays_and_empty_rows() -> None:
    padded = pad_rows([[], [7, 8], np.array([9], dtype=np.uint16)])
    assert padded.tolist() == [[0, 0], [7, 8], [9, 0]]
    assert padded.dtype == torch.int64
    assert pad_rows([[]]).shape == (1, 0)
