"""Dropout with 15 random bits per element has the right probability, scale and independence."""

from __future__ import annotations

import pytest
import torch

from transduce.model.dropout import dropout


@pytest.mark.parametrize("p_drop", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("shape", [(400_001,), (1000, 401)])
def test_share_scale_and_independence(p_drop: float, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    out = dropout(torch.ones(shape), p_drop, training=True)
    kept = out != 0
    deviation = (p_drop * (1 - p_drop) / kept.numel()) ** 0.5
    assert kept.double().mean().item() == pytest.approx(1 - p_drop, abs=5 * deviation)
    torch.testing.assert_close(out[kept].unique(), torch.tensor([1 / (1 - p_drop)]), rtol=1e-4, atol=0)
    flat = kept.flatten().double() - (1 - p_drop)  # neighbours share a draw, but must be independent
    for distance in (1, 2, 3, 4):
        correlation = (flat[:-distance] * flat[distance:]).mean() / (p_drop * (1 - p_drop))
        assert abs(correlation.item()) < 5 / kept.numel() ** 0.5


def test_the_gradient_goes_where_the_value_went() -> None:
    torch.manual_seed(1)
    x = torch.randn(50, 7, requires_grad=True)
    out = dropout(x, 0.4, training=True)
    out.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad * x.detach(), out.detach())


def test_the_same_seed_gives_the_same_mask_and_evaluation_none() -> None:
    x = torch.ones(1000)
    masks = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        masks.append(dropout(x, 0.5, training=True))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0, training=True) is x


def test_16_bit_floats_stay_16_bit() -> None:
    assert dropout(torch.ones(8, dtype=torch.bfloat16), 0.1, training=True).dtype == torch.bfloat16


def test_a_probability_next_to_1_keeps_something_to_scale() -> None:
    torch.manual_seed(2)  # about three of them stay
    out = dropout(torch.ones(100_000), 1 - 1e-9, training=True)
    assert out.isfinite().all()
    assert 0 < out.count_nonzero() < 100
