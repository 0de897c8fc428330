"""The Transformer against torch.nn's encoder and decoder layers; sinusoids and loss against fp64 NumPy."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import transduce.loss as loss_module
from said import naming
from transduce.config import ModelConfig
from transduce.loss import LossConfig
from transduce.model import Transformer, for_inference, has_int8_products
from transduce.model.attention import AttentionKernel, CrossAttention, SelfAttention
from transduce.model.embedding import sinusoid
from transduce.model.inference import with_output_rows
from transduce.training import (
    cross_entropy,
    cross_entropy_reference,
    inverse_sqrt_lr,
    r_drop,
    r_drop_reference,
    smoothing_weights,
)

CONFIG = ModelConfig(
    n_encoder_layers=2, n_decoder_layers=3, d_model=16, d_ff=24, n_heads=4, d_k=4, d_v=4, p_drop=0.0,
    src_vocab_size=11, tgt_vocab_size=11,
)  # fmt: skip
SRC = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0], [8, 9, 2, 0]])
TGT = torch.tensor([[1, 4, 5], [1, 6, 0], [1, 0, 0]])


def copy_attention(ours: SelfAttention | CrossAttention, theirs: nn.MultiheadAttention) -> None:
    match ours:
        case SelfAttention():
            theirs.in_proj_weight.copy_(ours.w_qkv.weight)
        case CrossAttention():
            theirs.in_proj_weight.copy_(torch.cat((ours.w_q.weight, ours.w_kv.weight)))
    theirs.out_proj.weight.copy_(ours.w_o.weight)
    match ours:
        case SelfAttention(w_qkv=nn.Linear(bias=torch.Tensor() as bias)):
            theirs.in_proj_bias.copy_(bias)
        case CrossAttention(w_q=nn.Linear(bias=torch.Tensor() as query), w_kv=nn.Linear(bias=torch.Tensor() as others)):
            theirs.in_proj_bias.copy_(torch.cat((query, others)))
        case _:
            theirs.in_proj_bias.zero_()
    theirs.out_proj.bias.zero_() if ours.w_o.bias is None else theirs.out_proj.bias.copy_(ours.w_o.bias)


def copy_rest(ours: nn.Module, theirs: nn.Module, norms: list[str]) -> None:
    theirs.linear1.load_state_dict(ours.feed_forward.w_1.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.w_2.state_dict())
    for number, name in enumerate(norms, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(getattr(ours, name).norm.state_dict())


TORCH_ACTIVATIONS = {  # torch's fast path takes every nn.GELU for the exact one
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "swish": F.silu,
}


@torch.no_grad()
def torch_states(model: Transformer) -> torch.Tensor:
    """The decoder's states computed by torch's own layers on padded tensors, with the model's weights."""
    config = model.config
    options = {"dim_feedforward": config.d_ff, "dropout": 0.0, "batch_first": True, "norm_first": config.norm == "pre",
               "layer_norm_eps": config.norm_eps, "activation": TORCH_ACTIVATIONS[config.activation],
               "dtype": torch.float64}  # fmt: skip

    def embed(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return table[ids] * math.sqrt(config.d_model) + sinusoid(ids.shape[1], config.d_model)

    memory = embed(SRC, model.source.embedding.weight)
    for ours in model.encoder:
        layer = nn.TransformerEncoderLayer(config.d_model, config.n_heads, **options).eval()
        copy_attention(ours.self_attention, layer.self_attn)
        copy_rest(ours, layer, ["self_attention_residual", "feed_forward_residual"])
        memory = layer(memory, src_key_padding_mask=SRC == 0)
    memory = model.encoder.norm(memory)
    x = embed(TGT, model.target.embedding.weight)
    for ours in model.decoder:
        layer = nn.TransformerDecoderLayer(config.d_model, config.n_heads, **options).eval()
        copy_attention(ours.self_attention, layer.self_attn)
        copy_attention(ours.cross_attention, layer.multihead_attn)
        copy_rest(ours, layer, ["self_attention_residual", "cross_attention_residual", "feed_forward_residual"])
        mask = nn.Transformer.generate_square_subsequent_mask(TGT.shape[1], dtype=torch.float64)
        x = layer(x, memory, tgt_mask=mask, memory_key_padding_mask=SRC == 0)
    return model.decoder.norm(x)[TGT != 0]


def random_model(kernel: AttentionKernel = "auto", **changes: Any) -> Transformer:
    """A model whose norms and biases do something, in float64."""
    torch.manual_seed(5)
    model = Transformer(CONFIG.model_copy(update=changes), kernel=kernel).double().eval()
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            nn.init.normal_(module.weight, 1.0, 0.2)
        if isinstance(bias := getattr(module, "bias", None), nn.Parameter):
            nn.init.normal_(bias, 0.0, 0.2)
    model.source.positions.table_PD = sinusoid(1024, 16)  # not the fp32 rounding of it
    model.target.positions.table_PD = sinusoid(1024, 16)
    return model


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("kernel", ["reference", "fused"])
def test_model_equals_torch_layers(norm: str, kernel: AttentionKernel) -> None:
    model = random_model(kernel, norm=norm)
    torch.testing.assert_close(model(SRC, TGT), torch_states(model), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["gelu", "gelu-tanh", "swish"])
def test_switches_of_later_models_equal_torchs(norm: str, activation: str) -> None:
    model = random_model(norm=norm, activation=activation, attention_bias=True, norm_eps=1e-3)
    torch.testing.assert_close(model(SRC, TGT), torch_states(model), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("embeddings", ["three-way", "separate"])
def test_a_bias_of_the_output_equals_torchs(embeddings: str) -> None:
    model = random_model(embeddings=embeddings, output_bias=True)
    states, bias = model(SRC, TGT).detach(), model.output.bias
    assert bias is not None
    assert bias.abs().min() > 0
    expected = states @ model.output_weight.T + bias
    torch.testing.assert_close(model.logits(states), expected)
    targets = torch.arange(len(states)) % 11
    loss = model.output.loss(states, targets, LossConfig(eps_ls=0.1))
    wanted = F.cross_entropy(expected, targets, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(loss.loss_nats, wanted)
    gradients = torch.autograd.grad(loss.loss_nats, (bias, model.output_weight))
    torch.testing.assert_close(gradients, torch.autograd.grad(wanted, (bias, model.output_weight)))
    for precision, tolerance in (("fp32", 1e-4), ("int8", 0.1)):
        if precision == "fp32" or has_int8_products("cpu"):
            fast = for_inference(model.float(), precision)  # type: ignore[arg-type]
            torch.testing.assert_close(fast.logits(states.float()), expected.float(), atol=tolerance, rtol=tolerance)
            few = with_output_rows(fast, torch.tensor([3, 7]))
            torch.testing.assert_close(few.logits(states.float()), fast.logits(states.float())[:, [3, 7]])


def test_sinusoid_equals_the_printed_formula() -> None:
    ours = sinusoid(50, 12).numpy()
    for position, i in np.ndindex(50, 6):
        angle = position / 10000 ** (2 * i / 12)
        assert ours[position, 2 * i] == pytest.approx(np.sin(angle), abs=1e-12)
        assert ours[position, 2 * i + 1] == pytest.approx(np.cos(angle), abs=1e-12)


def test_sinusoid_of_a_shifted_position_is_a_rotation_of_it() -> None:
    """Section 3.5: PE(pos + k) is a linear function of PE(pos), the same for every pos."""
    table, k = sinusoid(40, 8).numpy(), 7
    for i in range(4):
        angle = k / 10000 ** (2 * i / 8)
        rotation = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        np.testing.assert_allclose(table[:-k, 2 * i : 2 * i + 2] @ rotation.T, table[k:, 2 * i : 2 * i + 2], atol=1e-12)


@pytest.mark.parametrize("eps", [0.0, 0.1, 0.3, 1.0])
def test_uniform_smoothing_equals_torch(eps: float) -> None:
    torch.manual_seed(1)
    states, weight, targets = torch.randn(7, 5).double(), torch.randn(9, 5).double(), torch.randint(9, (7,))
    ours = cross_entropy_reference(states, weight, targets, eps_ls=eps, smoothing="uniform")
    logits = states @ weight.T
    expected = F.cross_entropy(logits, targets, label_smoothing=eps, reduction="sum")
    torch.testing.assert_close(ours.loss_nats, expected)
    torch.testing.assert_close(ours.nll_nats, F.cross_entropy(logits, targets, reduction="sum"))


def test_the_authors_smoothing_by_hand() -> None:
    """V = 3 classes, eps = 0.1: the target is (0.9, 0.05, 0.05)."""
    states, weight = torch.tensor([[1.0]]).double(), torch.tensor([[2.0], [1.0], [-1.0]]).double()
    log_p = np.array([2.0, 1.0, -1.0]) - np.log(np.exp([2.0, 1.0, -1.0]).sum())
    ours = cross_entropy_reference(states, weight, torch.tensor([0]), eps_ls=0.1, smoothing="authors")
    assert float(ours.loss_nats) == pytest.approx(-(np.array([0.9, 0.05, 0.05]) @ log_p), abs=1e-12)
    assert smoothing_weights(0.1, 3, "authors") == pytest.approx((0.85, 0.05))


@pytest.mark.parametrize("smoothing", ["uniform", "authors"])
@pytest.mark.parametrize("scale", [1.0, 300.0])  # of the logits; at 300 most probabilities are zero
@pytest.mark.parametrize("n_rows", [1, 64, 1500])  # of blocks of 64 rows, in parts of 5
def test_blockwise_loss_equals_the_reference(
    smoothing: str, scale: float, n_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_module, "BLOCK_BYTES", 64 * 13 * 8)
    monkeypatch.setattr(loss_module, "CPU_PART_ENTRIES", 5 * 13)
    torch.manual_seed(2)
    values = []
    states, weight = scale * torch.randn(n_rows, 6).double(), torch.randn(13, 6).double()
    targets = torch.randint(13, (n_rows,))
    for function in (cross_entropy, cross_entropy_reference):
        leaves = states.clone().requires_grad_(), weight.clone().requires_grad_()
        loss = function(*leaves, targets, eps_ls=0.1, smoothing=smoothing)  # type: ignore[arg-type]
        (loss.loss_nats * 0.37).backward()
        values.append((loss.loss_nats.detach(), loss.nll_nats, leaves[0].grad, leaves[1].grad))
    for ours, expected in zip(*values, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("smoothing", ["uniform", "authors"])
@pytest.mark.parametrize("alpha", [0.0, 5.0])
def test_r_drop_equals_the_reference(smoothing: str, alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "BLOCK_BYTES", 64 * 2 * 13 * 8)
    monkeypatch.setattr(loss_module, "CPU_PART_ENTRIES", 5 * 13)
    torch.manual_seed(4)
    states, weight = torch.randn(2, 131, 6).double(), torch.randn(13, 6).double()
    targets = torch.randint(13, (131,))
    values = []
    for function in (r_drop, r_drop_reference):
        leaves = states.clone().requires_grad_(), weight.clone().requires_grad_()
        loss = function(*leaves, targets, eps_ls=0.1, smoothing=smoothing, alpha=alpha)  # type: ignore[arg-type]
        (loss.loss_nats * 0.37).backward()
        values.append((loss.loss_nats.detach(), loss.nll_nats, leaves[0].grad, leaves[1].grad))
    for ours, expected in zip(*values, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-10)


def test_the_divergence_of_r_drop_is_that_of_torch() -> None:
    torch.manual_seed(6)
    states, weight, targets = torch.randn(2, 9, 6).double(), torch.randn(13, 6).double(), torch.randint(13, (9,))
    log_p = (states @ weight.T).log_softmax(-1)
    divergences = [F.kl_div(log_p[1 - k], log_p[k], log_target=True, reduction="sum") for k in (0, 1)]
    losses = [F.cross_entropy(states[k] @ weight.T, targets, label_smoothing=0.1, reduction="sum") for k in (0, 1)]
    ours = r_drop_reference(states, weight, targets, eps_ls=0.1, smoothing="uniform", alpha=5.0)
    torch.testing.assert_close(ours.loss_nats, sum(losses) / 2 + 5.0 / 2 * sum(divergences) / 2)


def test_r_drop_of_two_equal_passes_is_the_plain_loss() -> None:
    torch.manual_seed(5)
    states, weight, targets = torch.randn(9, 6).double(), torch.randn(13, 6).double(), torch.randint(13, (9,))
    plain = cross_entropy(states, weight, targets, eps_ls=0.1, smoothing="uniform")
    twice = r_drop(torch.stack((states, states)), weight, targets, eps_ls=0.1, smoothing="uniform", alpha=3.0)
    torch.testing.assert_close(twice.loss_nats, plain.loss_nats)
    torch.testing.assert_close(twice.nll_nats, plain.nll_nats)


def test_the_gradient_of_the_blockwise_loss_can_be_taken_once() -> None:
    leaf = torch.randn(4, 6, requires_grad=True)
    loss = cross_entropy(leaf, torch.randn(13, 6), torch.tensor([1, 2, 3, 4]), eps_ls=0.1, smoothing="uniform")
    loss.loss_nats.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match=naming("gradient", "cross_entropy", "once")):
        loss.loss_nats.backward()


def test_blockwise_loss_in_bf16_is_near_fp32() -> None:
    torch.manual_seed(3)
    states, weight, targets = torch.randn(200, 32), torch.randn(50, 32) / 6, torch.randint(50, (200,))
    gradients = []
    for is_bf16 in (False, True):
        leaf = states.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=is_bf16):
            loss = cross_entropy(leaf, weight, targets, eps_ls=0.1, smoothing="uniform")
        assert loss.loss_nats.dtype == torch.float32
        loss.loss_nats.backward()
        gradients.append((loss.loss_nats.item(), leaf.grad))
    assert gradients[1][0] == pytest.approx(gradients[0][0], rel=2e-3)
    cosine = F.cosine_similarity(gradients[0][1].flatten(), gradients[1][1].flatten(), dim=0)
    assert cosine > 0.999


def test_schedule_is_equation_3() -> None:
    for step in (1, 100, 3999, 4000, 4001, 100_000):
        expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert inverse_sqrt_lr(step, d_model=512, warmup_steps=4000) == pytest.approx(expected, rel=1e-12)
    assert inverse_sqrt_lr(4000, d_model=512, warmup_steps=4000) == pytest.approx(6.99e-4, rel=1e-3)  # the base model
    assert inverse_sqrt_lr(4000, d_model=1024, warmup_steps=4000) == pytest.approx(4.94e-4, rel=1e-3)  # the big one
    with pytest.raises(ValueError, match=naming("step", "d_model", "warmup_steps", 1, "0, 512, 4000")):
        inverse_sqrt_lr(0, d_model=512, warmup_steps=4000)
