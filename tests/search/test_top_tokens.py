"""The tokens that search looks at are those that a plain sort finds."""

from __future__ import annotations

import pytest
import torch

from transduce.search.top_tokens import CHUNK, top_k, top_tokens


@pytest.mark.parametrize("n_classes", [1, CHUNK, CHUNK**2 - 1, CHUNK**2, CHUNK**2 + 17, 37_000])
@pytest.mark.parametrize("k", [1, 8, 70])
def test_the_greatest_of_many(n_classes: int, k: int) -> None:
    x_NV = torch.randn(5, n_classes, generator=torch.Generator().manual_seed(n_classes))
    k = min(k, n_classes)
    values, places = top_k(x_NV, k)
    expected = x_NV.topk(k)
    assert torch.equal(values, expected.values)
    assert torch.equal(places, expected.indices)  # no ties among these


def test_the_greatest_in_one_chunk_and_in_the_rest() -> None:
    x_NV = torch.zeros(2, CHUNK**2 + 5)
    x_NV[0, 640:648] = torch.arange(1.0, 9.0)
    x_NV[1, -4:] = torch.arange(1.0, 5.0)
    assert top_k(x_NV, 4)[1].tolist() == [[647, 646, 645, 644], [4100, 4099, 4098, 4097]]


def test_what_is_not_a_number_comes_to_light_and_what_is_forbidden_comes_last() -> None:
    logits_NV = torch.randn(2, CHUNK**2, generator=torch.Generator().manual_seed(0))
    logits_NV[0, 77] = torch.nan
    log_probs_NK, ids_NK = top_tokens(logits_NV, 2, suppressed_ids=torch.tensor([int(logits_NV[1].argmax())]))
    assert log_probs_NK[0].isnan().all()
    assert ids_NK[1, 0] == logits_NV[1].topk(2).indices[1]
