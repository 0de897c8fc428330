"""Attention without padding, in C: outputs and gradients of the definition, and where layers use it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from transduce import native_library
from transduce.config import LanguageModelConfig, TransformerConfig
from transduce.model import unpadded_attention as module
from transduce.model.attention import AttentionKernel, dot_product_attention, split_heads
from transduce.model.make import make_model
from transduce.model.unpadded_attention import can_attend_unpadded, unpadded_attention

pytestmark = pytest.mark.skipif(not native_library.computes(1), reason="the library is not compiled")
Offsets = tuple[NDArray[np.int32], NDArray[np.int32]]


def defined(queries: Tensor, memory: Tensor | None, offsets: Offsets, sizes: dict[str, int], is_causal: bool) -> Tensor:
    """Equation 1 for each sentence by itself."""
    n_heads, d_k, d_v = sizes.values()
    keys = queries[:, n_heads * d_k :] if memory is None else memory
    out = queries.new_zeros(len(queries), n_heads * d_v)
    for sentence in range(len(offsets[0]) - 1):
        of_queries, of_keys = (slice(each[sentence], each[sentence + 1]) for each in offsets)
        parts = queries[of_queries, : n_heads * d_k], keys[of_keys, : n_heads * d_k], keys[of_keys, n_heads * d_k :]
        q, k, v = (split_heads(part.unsqueeze(0), n_heads) for part in parts)
        allow = torch.ones(1, q.shape[2], k.shape[2], dtype=torch.bool)
        heads, _ = dot_product_attention(q, k, v, allow_BTS=allow.tril() if is_causal else allow)
        out[of_queries] = heads[0].transpose(0, 1).flatten(1)
    return out


def of_lengths(lengths: list[int]) -> NDArray[np.int32]:
    return np.cumsum([0, *lengths]).astype(np.int32)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Tensor, Tensor | None, Offsets, dict[str, int], bool]:
    """Projections with rows behind the end, of self-attention (causal or not) or of cross-attention."""
    sizes = {"n_heads": draw(st.integers(1, 4)), "d_k": draw(st.integers(1, 40)), "d_v": draw(st.integers(1, 40))}
    n_sentences = draw(st.integers(1, 4))
    lengths = st.lists(st.integers(1, 50), min_size=n_sentences, max_size=n_sentences)
    torch.manual_seed(draw(st.integers(0, 1000)))
    n_heads, d_k, d_v = sizes.values()
    queries, is_causal = of_lengths(draw(lengths)), draw(st.booleans())
    n_rows = int(queries[-1]) + draw(st.integers(0, 3))
    if draw(st.booleans()):
        x = torch.randn(n_rows, n_heads * (2 * d_k + d_v), requires_grad=True)
        return x, None, (queries, queries), sizes, is_causal
    keys = of_lengths(draw(lengths))
    memory = torch.randn(int(keys[-1]) + draw(st.integers(0, 3)), n_heads * (d_k + d_v), requires_grad=True)
    return torch.randn(n_rows, n_heads * d_k, requires_grad=True), memory, (queries, keys), sizes, False


@settings(max_examples=60, deadline=None)
@given(batches(), st.sampled_from((torch.float32, torch.bfloat16)))
def test_outputs_and_gradients_are_those_of_equation_1(batch: Any, dtype: torch.dtype) -> None:
    queries, memory, offsets, sizes, is_causal = batch
    inputs = [x.detach().to(dtype).requires_grad_() for x in (queries, memory) if x is not None]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    ours = unpadded_attention(inputs[0], [*inputs, None][1], offsets, **sizes, is_causal=is_causal)
    theirs = defined(exact[0], [*exact, None][1], offsets, sizes, is_causal)
    grad = torch.randn_like(ours)
    ours.backward(grad)
    theirs.backward(grad.double())
    tolerance = {torch.float32: 2e-6, torch.bfloat16: 0.006}[dtype]
    for got, wanted in zip((ours, *(x.grad for x in inputs)), (theirs, *(x.grad for x in exact)), strict=True):
        assert got is not None
        assert wanted is not None
        assert got.dtype == dtype
        assert (got.double() - wanted).norm() <= tolerance * max(1.0, float(wanted.detach().norm()))
    for got, of_rows in zip((ours, *(x.grad for x in inputs)), (offsets[0], *offsets), strict=False):
        assert got is not None
        assert not got[of_rows[-1] :].any()  # behind the end


def test_each_thread_has_some_of_the_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = of_lengths([5, 40, 1, 17, 8])
    x, results = torch.randn(int(offsets[-1]), 3 * 24), list[tuple[Tensor, Tensor]]()
    for n_threads in (1, 2, 8):
        monkeypatch.setattr(torch, "get_num_threads", lambda n=n_threads: n)
        own = x.clone().requires_grad_()
        out = unpadded_attention(own, None, (offsets, offsets), n_heads=3, d_k=8, d_v=8, is_causal=True)
        out.backward(x[:, :24].contiguous())
        assert own.grad is not None
        results.append((out.detach(), own.grad))
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(result, results[0], strict=True))


def test_only_what_needs_a_gradient_on_a_cpu_is_computed_by_it() -> None:
    x = torch.randn(2, 3)
    assert not can_attend_unpadded(x)
    assert can_attend_unpadded(x.requires_grad_())
    assert can_attend_unpadded(x.bfloat16())
    assert not can_attend_unpadded(x.double())


SIZES: dict[str, Any] = {
    "d_model": 32,
    "d_ff": 48,
    "n_heads": 4,
    "d_k": 8,
    "d_v": 8,
    "p_drop": 0.0,
    "activation": "gelu",
}
BATCH = torch.tensor([[4, 5, 6, 7, 2], [4, 2, 0, 0, 0], [9, 9, 2, 0, 0]])


def gradients(config: Any, kernel: AttentionKernel, precision: torch.dtype = torch.float32) -> list[Tensor]:
    """The gradients of all weights of a model of the same weights."""
    torch.manual_seed(3)
    model = make_model(config.with_vocabulary(12, 12)).train()
    for layer in model.modules():
        if hasattr(layer, "kernel"):
            layer.kernel = kernel
    with torch.autocast("cpu", precision, enabled=precision == torch.bfloat16):
        states = model(BATCH) if isinstance(config, LanguageModelConfig) else model.decode(model.encode(BATCH), BATCH)
    (states.float() * torch.randn(states.shape, generator=torch.Generator().manual_seed(1))).sum().backward()
    return [weight.grad for weight in model.parameters() if weight.grad is not None]


@pytest.mark.parametrize(
    "config",
    [
        TransformerConfig(n_encoder_layers=2, n_decoder_layers=2, **SIZES),
        TransformerConfig(n_encoder_layers=1, n_decoder_layers=1, attention_bias=True, **SIZES),
        LanguageModelConfig(n_layers=2, **SIZES),
        LanguageModelConfig(n_layers=2, is_causal=False, **SIZES),
    ],
    ids=["translation", "biases", "causal", "bidirectional"],
)
def test_models_learn_the_same_with_it(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[int]()
    run = module.compute
    monkeypatch.setattr(module, "compute", lambda call, n, n_threads: (calls.append(n), run(call, n, n_threads)))
    ours = gradients(config, "auto")
    n_attentions = config.n_layers if isinstance(config, LanguageModelConfig) else 3 * config.n_encoder_layers
    assert calls == [3] * 2 * n_attentions  # forward and backward
    theirs = gradients(config, "reference")
    assert len(calls) == 2 * n_attentions
    for got, wanted in zip(ours, theirs, strict=True):
        assert (got - wanted).norm() <= 1e-5 * max(1.0, float(wanted.detach().norm()))
    errors = [
        sum(float((got - wanted).square().sum()) for got, wanted in zip(rounded, theirs, strict=True))
        for rounded in (gradients(config, kernel, torch.bfloat16) for kernel in ("auto", "reference"))
    ]
    assert errors[0] <= 1.3 * errors[1]  # of rounding


@pytest.mark.parametrize(
    "changes", [{"p_drop_attention": 0.1}, {"attention": "restricted", "neighbourhood": 2}, {"compatibility": "cosine"}]
)
def test_other_attention_is_computed_by_torch(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "compute", lambda *arguments: pytest.fail("computed in C"))
    gradients(LanguageModelConfig(n_layers=1, **SIZES | changes), "auto")


def test_the_gradient_has_no_gradient() -> None:
    offsets = of_lengths([3])
    x = torch.randn(3, 12, requires_grad=True)
    out = unpadded_attention(x, None, (offsets, offsets), n_heads=1, d_k=4, d_v=4)
    (grad,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()
