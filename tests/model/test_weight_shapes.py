"""Names and shapes of weights are known without PyTorch: they are those of its models."""

from __future__ import annotations

from typing import Any

import pytest

from transduce.config import LanguageModelConfig, TransformerConfig
from transduce.model import ShapesOnly, make_model
from transduce.model.weight_shapes import weight_shapes
from transduce.model.weights import named_weights

SIZES = {"d_model": 8, "d_ff": 12, "n_heads": 2, "d_k": 3, "d_v": 5}
PAIR = SIZES | {"n_encoder_layers": 2, "n_decoder_layers": 1, "src_vocab_size": 9, "tgt_vocab_size": 9}
BIASES = {"attention_bias": True, "output_bias": True, "norm": "pre"}


def require_same(config: Any) -> None:
    with ShapesOnly():
        model = make_model(config)
    assert weight_shapes(config) == {name: tuple(weight.shape) for name, weight in named_weights(model).items()}


@pytest.mark.parametrize("embeddings", ["three-way", "target", "separate"])
@pytest.mark.parametrize("changes", [{}, BIASES, {"positions": "learned"}, {"positions": "words"}], ids=str)
def test_those_of_an_encoder_decoder(embeddings: str, changes: dict[str, Any]) -> None:
    require_same(TransformerConfig(**PAIR, embeddings=embeddings, **changes))


@pytest.mark.parametrize("source", ["patches", "frames"])
@pytest.mark.parametrize("changes", [{}, BIASES | {"embeddings": "separate"}, {"positions": "learned"}], ids=str)
def test_those_of_images_and_audio(source: str, changes: dict[str, Any]) -> None:
    require_same(TransformerConfig(**PAIR, source=source, source_width=16, patch_height=4, patch_width=3, **changes))


@pytest.mark.parametrize("output", ["tokens", "scalar", "tokens-and-value"])
@pytest.mark.parametrize("changes", [{}, BIASES, {"positions": "learned", "tied_embeddings": False}], ids=str)
def test_those_of_a_language_model(output: str, changes: dict[str, Any]) -> None:
    require_same(LanguageModelConfig(**SIZES, n_layers=2, vocab_size=9, output=output, **changes))
