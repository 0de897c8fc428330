"""Language models against GPT-2 and BERT: parameters by formula, and GPT-2's logits where transformers is installed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from said import naming
from transduce.config import LanguageModelConfig, ModelConfig, config_from_mapping
from transduce.errors import ConfigError
from transduce.model import TransformerLM, cost_of

GPT_2 = {
    "system": "language-model", "norm": "pre", "positions": "learned", "activation": "gelu-tanh", "norm_eps": 1e-5,
    "attention_bias": True, "scale_embeddings": False,
}  # fmt: skip


def gpt_2(**sizes: int) -> LanguageModelConfig:
    config = ModelConfig(**GPT_2 | sizes)
    assert isinstance(config, LanguageModelConfig)
    return config


def test_gpt_2_small_has_its_parameters() -> None:
    config = gpt_2(n_layers=12, d_model=768, d_ff=3072, n_heads=12, d_k=64, d_v=64, n_positions=1024, vocab_size=50_257)
    assert cost_of(config).parameters == 124_439_808


def test_the_layers_of_bert_base_have_their_parameters() -> None:
    config = LanguageModelConfig(
        n_layers=12, d_model=768, d_ff=3072, n_heads=12, d_k=64, d_v=64, attention_bias=True, is_causal=False,
        activation="gelu", norm_eps=1e-12,
    )  # fmt: skip
    assert cost_of(config).parameters_without_embeddings == 85_054_464


SMALL = {
    "n_layers": 2,
    "d_model": 16,
    "d_ff": 24,
    "n_heads": 2,
    "d_k": 8,
    "d_v": 8,
    "vocab_size": 30,
    "n_positions": 12,
}


@pytest.mark.parametrize("tied_embeddings", [True, False])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("output_bias", [False, True])
def test_the_formula_counts_what_is_built(tied_embeddings: bool, norm: str, positions: str, output_bias: bool) -> None:
    config = ModelConfig(
        **SMALL,
        system="language-model",
        tied_embeddings=tied_embeddings,
        norm=norm,
        positions=positions,
        output_bias=output_bias,
    )
    assert isinstance(config, LanguageModelConfig)
    model = TransformerLM.from_config(config)
    assert sum(weight.numel() for weight in model.parameters()) == cost_of(config).parameters


def test_the_vocabulary_is_that_of_the_target() -> None:
    config = gpt_2().with_vocabulary(7, 9)
    assert (config.vocab_size, config.vocab_sizes, config.layers_in_words()) == (9, (9, 9), "6 layers")


def test_word_positions_are_of_an_encoder_decoder() -> None:
    with pytest.raises(ConfigError, match=naming("positions", "'words'", "'language-model'")):
        config_from_mapping(ModelConfig, {"system": "language-model", "positions": "words"}, where="model")


@torch.no_grad()
def test_the_weights_of_gpt_2_give_its_logits() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=30, n_positions=12, n_embd=16, n_layer=2, n_head=2, n_inner=24)
    ).eval()
    for parameter in theirs.parameters():  # biases and norms that do something
        parameter.add_(0.1 * torch.randn_like(parameter))
    ours = TransformerLM.from_config(gpt_2(**SMALL)).eval()
    copy_gpt_2(theirs.transformer, ours)
    ids = torch.randint(4, 30, (3, 12))
    torch.testing.assert_close(ours.output.logits(ours(ids)), theirs(ids).logits.flatten(0, 1), rtol=1e-5, atol=1e-5)


def copy_gpt_2(theirs: nn.Module, ours: TransformerLM) -> None:
    """Copy the weights; GPT-2's matrices are stored as (in, out)."""
    ours.source.embedding.weight.copy_(theirs.wte.weight)
    ours.source.positions.weight.copy_(theirs.wpe.weight)
    for mine, block in zip(ours.decoder, theirs.h, strict=True):
        pairs = (
            (mine.self_attention.w_qkv, block.attn.c_attn), (mine.self_attention.w_o, block.attn.c_proj),
            (mine.feed_forward.w_1, block.mlp.c_fc), (mine.feed_forward.w_2, block.mlp.c_proj),
        )  # fmt: skip
        for linear, convolution in pairs:
            linear.weight.copy_(convolution.weight.T)
            linear.bias.copy_(convolution.bias)
        mine.self_attention_residual.norm.load_state_dict(block.ln_1.state_dict())
        mine.feed_forward_residual.norm.load_state_dict(block.ln_2.state_dict())
    ours.decoder.norm.load_state_dict(theirs.ln_f.state_dict())
