"""Models prepared for inference against the original models."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from said import naming
from transduce.config import InferencePrecision, ModelConfig
from transduce.errors import ConfigError
from transduce.model import Transformer, for_inference, has_int8_products, inference
from transduce.model.inference import (
    BLOCK_ROWS,
    Int8Linear,
    PackedLinear,
    _BlockwiseFeedForward,
    int8_linear_reference,
)
from transduce.model.transformer import FrontEndMaker
from transduce.model.word_positions import WordPositionFrontEnd

needs_int8 = pytest.mark.skipif(not has_int8_products("cpu"), reason="no products of int8 on this processor")
# Maximum error of a product, relative to the largest entry.
TOLERANCE: dict[InferencePrecision, float] = {"fp32": 1e-5, "bf16": 0.03, "int8": 0.05}
PRECISIONS = ["fp32", "bf16", pytest.param("int8", marks=needs_int8)]


def tiny(**changes: object) -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(
        n_encoder_layers=2,
        n_decoder_layers=2,
        d_model=32,
        d_ff=64,
        n_heads=4,
        d_k=8,
        d_v=8,
        src_vocab_size=50,
        tgt_vocab_size=50,
    )
    config = config.model_copy(update=changes)
    makers: dict[str, FrontEndMaker] = {}
    if config.positions == "words":
        makers["source"] = lambda embedding: WordPositionFrontEnd(embedding, range(5, 50, 2), p_drop=config.p_drop)
        makers["target"] = lambda embedding: WordPositionFrontEnd(embedding, range(6, 50, 3), p_drop=config.p_drop)
    return Transformer(config, **makers).eval()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"embeddings": "separate", "norm": "pre"},
        {"positions": "words"},
        {"n_experts": 8},
    ],  # some experts are inactive
)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_logits_are_those_of_the_model(precision: InferencePrecision, changes: dict[str, object]) -> None:
    model = tiny(**changes)
    fast = for_inference(model, precision)
    src_BS = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]])
    last_ids_N = torch.tensor([1, 1])
    with torch.no_grad():
        state, fast_state = model.start(src_BS), fast.start(src_BS)
        for _ in range(5):
            expected_NV, state = model.step(last_ids_N, state)
            got_NV, fast_state = fast.step(last_ids_N, fast_state)
            scale = expected_NV.abs().max().item()
            torch.testing.assert_close(got_NV.float(), expected_NV, rtol=0, atol=TOLERANCE[precision] * scale)
            last_ids_N = expected_NV.argmax(dim=1)


def test_the_original_model_is_unchanged_and_independent_of_its_copy() -> None:
    model = tiny().train()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    fast = for_inference(model, "fp32")
    assert model.training
    assert all(module.training for module in model.modules())
    assert not any(module.training for module in fast.modules())
    assert model.output.weight is model.target.embedding.weight
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    states_ND = torch.randn(3, 32)
    logits_NV = fast.logits(states_ND)
    with torch.no_grad():
        model.target.embedding.weight.zero_()
    torch.testing.assert_close(fast.logits(states_ND), logits_NV)


def test_a_model_in_double_precision_stays_in_it() -> None:
    model = tiny().double()
    states_ND = torch.randn(3, 32, dtype=torch.float64)
    torch.testing.assert_close(
        for_inference(model, "fp32").logits(states_ND), model.logits(states_ND), rtol=1e-12, atol=0
    )


def test_bf16_on_a_processor_whose_products_onednn_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with AVX2 alone: packing a bf16 matrix is an error there."""
    monkeypatch.setattr(inference, "_has_packed_products", lambda dtype, device: dtype == torch.float32)
    fast = for_inference(tiny(), "bf16")
    assert not any(isinstance(layer, PackedLinear) for layer in fast.modules())
    test_logits_are_those_of_the_model("bf16", {})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("n_rows", [1, 4, 63, 256])
@pytest.mark.parametrize("has_bias", [False, True])
def test_packed_products_are_products(dtype: torch.dtype, n_rows: int, has_bias: bool) -> None:
    if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("oneDNN has no products in bf16 on this processor")
    torch.manual_seed(1)
    linear = nn.Linear(96, 70, bias=has_bias).to(dtype)
    x = torch.randn(2, n_rows, 96)
    expected = linear(x.to(dtype))
    got = PackedLinear(linear.weight, linear.bias, dtype)(x)
    assert got.dtype == dtype
    assert got.shape == (2, n_rows, 70)
    torch.testing.assert_close(got, expected, rtol=1e-2 if dtype == torch.bfloat16 else 1e-5, atol=1e-2)


@needs_int8
@given(
    n_rows=st.integers(1, 40),
    n_in=st.integers(1, 90),
    n_out=st.integers(1, 90),
    log_scale=st.integers(-20, 15),
    seed=st.integers(0, 2**32),
)
def test_int8_products_round_and_nothing_else(n_rows: int, n_in: int, n_out: int, log_scale: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    x_NI = torch.randn(n_rows, n_in, generator=random) * 2.0**log_scale
    x_NI[0] = 0  # an empty row
    weight_OI, bias_O = torch.randn(n_out, n_in, generator=random), torch.randn(n_out, generator=random)
    expected_NO = int8_linear_reference(x_NI, weight_OI, bias_O)
    # An entry that lies between two steps may be rounded to either.
    one_step = x_NI.abs().amax(dim=1, keepdim=True) * weight_OI.abs().amax() / 127
    difference_NO = (Int8Linear(weight_OI, bias_O)(x_NI) - expected_NO).abs()
    assert bool((difference_NO <= 1.01 * one_step + 1e-5).all())


@needs_int8
def test_the_feed_forward_network_in_blocks_is_that_of_all_rows() -> None:
    feed_forward = for_inference(tiny(), "int8").encoder[0].feed_forward
    assert isinstance(feed_forward, _BlockwiseFeedForward)
    x_ND = torch.randn(2 * BLOCK_ROWS + 3, 32)
    torch.testing.assert_close(feed_forward(x_ND), feed_forward.feed_forward(x_ND), rtol=1e-6, atol=1e-6)
    x_BTD = x_ND.view(5, -1, 32)
    assert torch.equal(feed_forward(x_BTD).flatten(0, 1), feed_forward(x_ND))


@needs_int8
def test_a_row_does_not_depend_on_its_neighbours() -> None:
    torch.manual_seed(2)
    x_NI, product = torch.randn(20, 64), Int8Linear(torch.randn(48, 64), None)
    loud_NI = torch.cat([x_NI, 1000 * torch.randn(20, 64)])
    assert torch.equal(product(x_NI), product(loud_NI)[:20])


def test_int8_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    with pytest.raises(ConfigError, match=naming("int8", "cpu", "bf16", "fp32")):
        for_inference(tiny(), "int8")
