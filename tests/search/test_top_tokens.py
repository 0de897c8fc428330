"""Top tokens against torch.topk."""

from __future__ import annotations

import pytest
import torch

from transduce.search.top_tokens import CHUNK, top_k, top_tokens


@pytest.mark.parametrize("vocab_size", [1, CHUNK, CHUNK**2 - 1, CHUNK**2, CHUNK**2 + 17, 37_000])
@pytest.mark.parametrize("k", [1, 8, 70])
def test_the_greatest_of_many(vocab_size: int, k: int) -> None:
    x_NV = torch.randn(5, vocab_size, generator=torch.Generator().manual_seed(vocab_size))
    k = min(k, vocab_size)
    values, indices = top_k(x_NV, k)
    expected = x_NV.topk(k)
    assert torch.equal(values, expected.values)
    assert torch.equal(indices, expected.indices)  # no ties among these


def test_the_greatest_in_one_chunk_and_in_the_rest() -> None:
    x_NV = torch.zeros(2, CHUNK**2 + 5)
    x_NV[0, 640:648] = torch.arange(1.0, 9.0)
    x_NV[1, -4:] = torch.arange(1.0, 5.0)
    assert top_k(x_NV, 4)[1].tolist() == [[647, 646, 645, 644], [4100, 4099, 4098, 4097]]


def test_nan_is_visible_and_suppressed_tokens_come_last() -> None:
    logits_NV = torch.randn(2, CHUNK**2, generator=torch.Generator().manual_seed(0))
    logits_NV[0, 77] = torch.nan
    log_probs_NX, ids_NX = top_tokens(logits_NV, 2, suppressed_ids=torch.tensor([int(logits_NV[1].argmax())]))
    assert log_probs_NX[0].isnan().all()
    assert ids_NX[1, 0] == logits_NV[1].topk(2).indices[1]


@pytest.mark.parametrize("vocab_size", [3, 40, CHUNK**2 + 9])
def test_without_scores_the_ids_are_the_same(vocab_size: int) -> None:
    logits_NV = torch.randn(6, vocab_size, generator=torch.Generator().manual_seed(1))
    before_NV = logits_NV.clone()
    suppressed_ids = torch.tensor([int(logits_NV[0].argmax()), 1])
    _, expected_N1 = top_tokens(logits_NV, 1, suppressed_ids=suppressed_ids)
    logits_N1, ids_N1 = top_tokens(logits_NV, 1, suppressed_ids=suppressed_ids, is_scored=False)
    assert torch.equal(ids_N1, expected_N1)
    assert torch.equal(logits_N1, logits_NV.gather(1, ids_N1))
    assert torch.equal(logits_NV, before_NV)


def test_without_scores_nan_is_visible() -> None:
    logits_NV = torch.zeros(1, CHUNK**2)
    logits_NV[0, 77] = torch.nan
    assert top_tokens(logits_NV, 1, suppressed_ids=torch.tensor([0]), is_scored=False)[0].isnan().all()


@pytest.mark.parametrize("vocab_size", [50, 5000])
def test_of_equal_logits_the_smallest_id_is_chosen_for_one_row_and_for_many(vocab_size: int) -> None:
    logits_NV = torch.zeros(3, vocab_size)
    logits_NV[:, [0, vocab_size - 1, 31]] = 1.0
    suppressed = torch.tensor([0, 1])
    for rows in (logits_NV[:1], logits_NV):
        _, ids_N1 = top_tokens(rows, 1, suppressed_ids=suppressed, is_scored=False)
        assert ids_N1.flatten().tolist() == [31] * len(rows)
