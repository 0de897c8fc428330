"""Batches of prompts with responses: which states predict which tokens."""

from __future__ import annotations

from pathlib import Path

from small_stores import write_responses
from transduce.data import open_store
from transduce.data.responses import ResponseBatches
from transduce.text import EOS_ID, PAD_ID, byte_tokenizer

ROWS = [([10, 11], [[20, 21, 22]]), ([12], [[23]]), ([13, 14, 15], [[24, 25]])]


def test_a_target_is_the_token_after_its_position(tmp_path: Path) -> None:
    write_responses(tmp_path / "store", ROWS, byte_tokenizer())
    source = ResponseBatches(open_store(tmp_path / "store"), max_tokens=100, seed=1)
    batch = source.batch(0, 0)
    tokens = batch.ids_BT[batch.ids_BT != PAD_ID].tolist()  # positions do not count padding
    ends = (batch.ids_BT != PAD_ID).sum(dim=1).cumsum(dim=0).sub(1).tolist()
    targets = batch.targets_N.tolist()
    assert sorted(targets) == sorted(id for _, [response] in ROWS for id in (*response, EOS_ID))
    for position, target in zip(batch.positions_N.tolist(), targets, strict=True):
        assert (position in ends) if target == EOS_ID else tokens[position + 1] == target
