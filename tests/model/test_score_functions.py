"""Compatibility functions against NumPy, one score at a time; the Transformers that use them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from transduce.config import ModelConfig
from transduce.model import cost_of, for_inference, make_model
from transduce.model.attention import dot_product_attention, weighted_values
from transduce.model.score_functions import AdditiveCompatibility, BilinearCompatibility, cosine, dot_product

N_HEADS, D_K = 2, 4


def queries_keys_values() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = ((3, N_HEADS, 5, D_K), (3, N_HEADS, 7, D_K), (3, N_HEADS, 7, 6))
    q, k, v = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return q, k, v


def filled(function: Any) -> Any:
    torch.nn.init.normal_(function.weight, generator=torch.Generator().manual_seed(2))
    return function.double()


@pytest.mark.parametrize("kind", ["dot", "cosine", "additive", "bilinear"])
def test_each_score_is_that_of_the_formula(kind: str) -> None:
    q, k, _ = queries_keys_values()
    functions = {
        "dot": dot_product,
        "cosine": cosine,
        "additive": filled(AdditiveCompatibility(N_HEADS, D_K)),
        "bilinear": filled(BilinearCompatibility(N_HEADS, D_K)),
    }
    scores = functions[kind](q, k)
    assert scores.shape == (3, N_HEADS, 5, 7)
    weight = None if kind in ("dot", "cosine") else functions[kind].weight.detach().numpy()
    for (b, h, t, s), score in np.ndenumerate(scores.detach().numpy()):
        query, key = q[b, h, t].numpy(), k[b, h, s].numpy()
        match kind:
            case "dot":
                expected = query @ key
            case "cosine":
                expected = np.sqrt(D_K) * query @ key / np.sqrt((query @ query) * (key @ key))
            case "additive":
                expected = weight[h, 0] @ np.tanh(query + key)
            case "bilinear":
                expected = query @ weight[h] @ key / np.sqrt(D_K)
        np.testing.assert_allclose(score, expected, rtol=1e-12, atol=1e-12)


def test_bilinear_scores_with_the_identity_are_the_paper_s() -> None:
    q, k, v = queries_keys_values()
    allow = torch.ones(3, 5, 7, dtype=torch.bool)
    allow[0, :, 4:] = False
    function = BilinearCompatibility(N_HEADS, D_K).double()
    with torch.no_grad():
        function.weight.copy_(torch.eye(D_K))
    expected, expected_weights = dot_product_attention(q, k, v, allow_BTS=allow)
    outputs, weights = weighted_values(function(q, k), v, allow_BTS=allow)
    torch.testing.assert_close(outputs, expected)
    torch.testing.assert_close(weights, expected_weights)


def config_of(compatibility: str) -> ModelConfig:
    return ModelConfig(
        n_encoder_layers=2, n_decoder_layers=1, d_model=16, d_ff=24, n_heads=2, d_k=8, d_v=4, src_vocab_size=20,
        tgt_vocab_size=20, compatibility=compatibility,
    )  # fmt: skip


@pytest.mark.parametrize("compatibility", ["scaled", "dot", "cosine", "additive", "bilinear"])
def test_parameters_are_those_of_the_formula(compatibility: str) -> None:
    model = make_model(config_of(compatibility))
    assert sum(weight.numel() for weight in model.parameters()) == cost_of(model.config).parameters
    more = {"scaled": 0, "dot": 0, "cosine": 0, "additive": 2 * 8, "bilinear": 2 * 8 * 8}[compatibility]
    layers = 2 + 2  # attention layers: two in the encoder, two in one decoder layer
    assert cost_of(model.config).parameters - cost_of(config_of("scaled")).parameters == layers * more


def test_each_function_gives_another_model() -> None:
    """With the same weights, as far as they share them."""
    src, tgt = torch.tensor([[4, 5, 6, 2]]), torch.tensor([[1, 7, 8, 9]])
    shared = make_model(config_of("scaled")).state_dict()
    states = []
    for compatibility in ("scaled", "dot", "cosine", "additive", "bilinear"):
        torch.manual_seed(1)
        model = make_model(config_of(compatibility)).eval()
        missing = model.load_state_dict(shared, strict=False)
        assert all("compatibility.weight" in name for name in missing.missing_keys)
        states.append(model(src, tgt))
    for index, one in enumerate(states):
        assert not any(torch.allclose(one, other, atol=1e-4) for other in states[index + 1 :])


@pytest.mark.parametrize("compatibility", ["dot", "cosine", "additive", "bilinear"])
@torch.no_grad()
def test_inference_in_bf16_is_near_fp32(compatibility: str) -> None:
    model = make_model(config_of(compatibility)).eval()
    src, tgt = torch.tensor([[4, 5, 6, 2]]), torch.tensor([[1, 7, 8, 9]])
    expected = model.logits(model(src, tgt))
    fast = for_inference(model, "bf16")
    state = fast.start(src)
    for position in range(4):
        logits, state = fast.step(tgt[:, position], state)
        torch.testing.assert_close(logits[0].float(), expected[position], atol=0.2, rtol=0.1)
