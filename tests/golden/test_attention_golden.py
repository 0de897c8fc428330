"""Attention against torch.nn.MultiheadAttention, torch's own kernel and float64 NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from said import naming
from transduce.config import ModelConfig
from transduce.errors import ShapeError
from transduce.model import Transformer
from transduce.model.attention import CrossAttention, SelfAttention, dot_product_attention, fused_attention
from transduce.model.padding import EncoderOutput, PaddingInfo, causal_mask


def numpy_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, allow: np.ndarray) -> np.ndarray:
    """Equation 1, one query at a time."""
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    for b, h, t in np.ndindex(q.shape[:3]):
        scores = np.array([q[b, h, t] @ k[b, h, s] / np.sqrt(q.shape[-1]) for s in range(k.shape[2])])
        scores = np.where(allow[b, t], scores, -np.inf)
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        out[b, h, t] = weights @ v[b, h]
    return out


@pytest.fixture
def tensors() -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(3)
    q = torch.randn(2, 3, 4, 8, dtype=torch.float64, generator=generator)
    k = torch.randn(2, 3, 5, 8, dtype=torch.float64, generator=generator)
    v = torch.randn(2, 3, 5, 6, dtype=torch.float64, generator=generator)  # d_v is not d_k
    allow = torch.rand(2, 4, 5, generator=generator) > 0.4
    allow[..., 0] = True
    return q, k, v, allow


def test_reference_equals_numpy(tensors: tuple[torch.Tensor, ...]) -> None:
    q, k, v, allow = tensors
    ours, weights = dot_product_attention(q, k, v, allow_BTS=allow)
    np.testing.assert_allclose(ours.numpy(), numpy_attention(*(x.numpy() for x in tensors)), atol=1e-12)
    assert (weights.masked_select(~allow.unsqueeze(1)) == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 4, dtype=torch.float64))


def test_fused_equals_reference_in_value_and_gradient(tensors: tuple[torch.Tensor, ...]) -> None:
    *qkv, allow = tensors
    results = []
    for function in (
        lambda *x: dot_product_attention(*x, allow_BTS=allow)[0],
        lambda *x: fused_attention(*x, allow_BTS=allow),
    ):
        leaves = [x.clone().requires_grad_() for x in qkv]
        out = function(*leaves)
        (out * torch.arange(out.numel()).view_as(out)).sum().backward()
        results.append([out.detach(), *(leaf.grad for leaf in leaves)])
    for reference, fused in zip(*results, strict=True):
        torch.testing.assert_close(fused, reference, rtol=1e-10, atol=1e-10)


def test_a_query_that_may_attend_to_no_position_is_refused(tensors: tuple[torch.Tensor, ...]) -> None:
    q, k, v, allow = tensors
    allow = allow.clone()
    allow[1, 2] = False
    with pytest.raises(ShapeError, match=naming("mask", "no position")):
        dot_product_attention(q, k, v, allow_BTS=allow)


@pytest.mark.parametrize("kernel", ["reference", "fused"])
def test_multi_head_attention_equals_torch(kernel: str) -> None:
    """torch's module holds W^Q, W^K, W^V in one matrix; with the same numbers the outputs are the same."""
    torch.manual_seed(0)
    config = ModelConfig(d_model=16, n_heads=4, d_k=4, d_v=4)
    ours = SelfAttention(config, kernel=kernel).double().eval()  # type: ignore[arg-type]
    theirs = nn.MultiheadAttention(16, 4, bias=False, batch_first=True, dtype=torch.float64).eval()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.w_qkv.weight)
        theirs.out_proj.weight.copy_(ours.w_o.weight)
    x_BTD = torch.randn(3, 5, 16, dtype=torch.float64)
    is_real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2, [True] + [False] * 4])
    padding = PaddingInfo.from_mask(is_real)
    x_ND = padding.gather(x_BTD)

    out_ND = ours(x_ND, padding, allow_BTS=padding.allow_B1S())
    expected, _ = theirs(x_BTD, x_BTD, x_BTD, key_padding_mask=~is_real)
    torch.testing.assert_close(out_ND[: padding.n_real], expected[is_real], rtol=1e-10, atol=1e-12)

    causal = causal_mask(5, torch.device("cpu"))
    out_ND = ours(x_ND, padding, allow_BTS=causal_mask(padding.shape_BT[1], torch.device("cpu")))
    expected, _ = theirs(x_BTD, x_BTD, x_BTD, attn_mask=~causal[0])
    torch.testing.assert_close(out_ND[: padding.n_real], expected[is_real], rtol=1e-10, atol=1e-12)


def test_separate_widths_change_the_shapes_only_inside() -> None:
    config = ModelConfig(d_model=16, n_heads=2, d_k=3, d_v=5)
    itself, source = SelfAttention(config), CrossAttention(config)
    assert itself.w_qkv.widths == [6, 6, 10]
    assert (source.w_q.weight.shape, source.w_kv.weight.shape) == ((6, 16), (16, 16))
    padding, memory_padding = (
        PaddingInfo.without_padding(2, 4, torch.device("cpu")),
        PaddingInfo.without_padding(2, 3, torch.device("cpu")),
    )
    x_ND, memory = torch.randn(8, 16), EncoderOutput(torch.randn(6, 16), memory_padding)
    assert itself(x_ND, padding, allow_BTS=None).shape == (8, 16)
    assert source(x_ND, padding, memory).shape == (8, 16)


def test_stacked_projections_are_initialised_separately() -> None:
    """Glorot's bound depends on the shape of a matrix: 6 / (fan in + fan out), of each by itself."""
    torch.manual_seed(0)
    weight = Transformer(ModelConfig(src_vocab_size=9, tgt_vocab_size=9)).encoder[0].self_attention.w_qkv.weight
    bound = (6 / (512 + 512)) ** 0.5
    for part in weight.split(512):
        assert 0.99 * bound < part.abs().max() <= bound
