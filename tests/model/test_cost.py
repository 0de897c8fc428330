"""Parameter counts by formula against built models and Table 3."""

from __future__ import annotations

import pytest
import torch

from said import says
from transduce.config import ModelConfig
from transduce.model import Transformer, cost_of, describe, make_model
from transduce.recipes import PRESETS, TABLE_3, preset

# The column "params x 10^6" of Table 3 with a vocabulary of 37,000.
MILLIONS = {
    "base": 63.05, "A-h1": 63.05, "A-h4": 63.05, "A-h16": 63.05, "A-h32": 63.05, "B-dk16": 55.97, "B-dk32": 58.33,
    "C-N2": 33.64, "C-N4": 48.35, "C-N8": 77.75, "C-d256": 26.82, "C-d1024": 163.82, "C-ff1024": 50.45,
    "C-ff4096": 88.24, "D-drop0": 63.05, "D-drop2": 63.05, "D-smooth0": 63.05, "D-smooth2": 63.05,
    "E-learned": 63.05 + 2 * 1024 * 512 / 1e6, "big": 214.17,
}  # fmt: skip


def test_every_row_of_table_3_has_its_size() -> None:
    assert list(MILLIONS) == list(TABLE_3)
    for name, millions in MILLIONS.items():
        assert cost_of(preset(name).model).parameters / 1e6 == pytest.approx(millions, abs=0.0051), name


@pytest.mark.parametrize("name", PRESETS)
def test_formula_equals_the_model_as_built(name: str) -> None:
    config = preset(name).model
    with torch.device("meta"):
        model = Transformer(config)
    assert sum(weight.numel() for weight in model.parameters()) == cost_of(config).parameters


@pytest.mark.parametrize("attention_bias", [False, True])
@pytest.mark.parametrize("output_bias", [False, True])
def test_formula_equals_the_model_with_biases(attention_bias: bool, output_bias: bool) -> None:
    config = ModelConfig(
        n_encoder_layers=2, n_decoder_layers=1, d_model=8, d_ff=12, n_heads=2, d_k=3, d_v=5, src_vocab_size=50,
        tgt_vocab_size=50, attention_bias=attention_bias, output_bias=output_bias,
    )  # fmt: skip
    plain = cost_of(config.model_copy(update={"attention_bias": False, "output_bias": False}))
    cost, model = cost_of(config), Transformer(config)
    assert sum(weight.numel() for weight in model.parameters()) == cost.parameters
    # Each of 2 + 2 attention layers has 2 x 6 biases of queries and keys, 10 of values and 8 of the output.
    assert cost.parameters - plain.parameters == 4 * 30 * attention_bias + 50 * output_bias
    assert cost.parameters_of_matrices == plain.parameters_of_matrices


@pytest.mark.parametrize("embeddings", ["three-way", "target", "separate"])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "words"])
def test_formula_equals_the_model_for_every_switch(embeddings: str, norm: str, positions: str) -> None:
    sizes = (50, 50) if embeddings == "three-way" else (50, 70)
    config = ModelConfig(
        n_encoder_layers=1, n_decoder_layers=2, d_model=8, d_ff=12, n_heads=2, d_k=3, d_v=5,
        embeddings=embeddings, norm=norm, positions=positions, n_positions=9,
        src_vocab_size=sizes[0], tgt_vocab_size=sizes[1],
    )  # fmt: skip
    model = make_model(config)
    assert sum(weight.numel() for weight in model.parameters()) == cost_of(config).parameters
    source, target, output = model.source.embedding.weight, model.target.embedding.weight, model.output_weight
    assert (source is target, output is target) == {
        "three-way": (True, True),
        "target": (False, True),
        "separate": (False, False),
    }[embeddings]


def test_base_costs_378_million_operations_a_token() -> None:
    cost = cost_of(ModelConfig())
    assert cost.flops_per_token / 1e6 == pytest.approx(378, abs=0.5)
    matrices = 6 * (4 * 512 * 512 + 2 * 512 * 2048) + 6 * (8 * 512 * 512 + 2 * 512 * 2048)
    assert cost.flops_per_token == 6 * (matrices + 37_000 * 512)
    assert cost_of(ModelConfig(), n_tokens=64).attention_flops_per_token == 2 * cost.attention_flops_per_token


def test_description_names_shapes_and_what_is_shared() -> None:
    with torch.device("meta"):
        text = describe(Transformer(ModelConfig()))
    assert says(text, "63,045,632")
    assert says(text, "TokenEmbedding", "target.embedding")
    assert says(text, 6, "Layer")
    assert says(text, "w_1", "Linear", "weight (2048, 512)", "bias (2048)")
