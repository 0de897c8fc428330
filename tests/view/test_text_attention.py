"""The attention weights of language models, of all kinds, on the attention page."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from transduce.config import LanguageModelConfig, ModelConfig, SearchConfig
from transduce.errors import DataError, ShapeError
from transduce.inference import LanguageModel
from transduce.inference.language_models.causal import CausalLanguageModel
from transduce.inference.language_models.masked import MaskedLanguageModel
from transduce.inference.language_models.spans import SpanLanguageModel
from transduce.model import Transformer, TransformerLM
from transduce.text import LANGUAGE_MODEL_TOKENS, byte_tokenizer
from transduce.view import AttentionMaps, attention_of_text, attention_page

TOKENIZER = byte_tokenizer(extra_tokens=LANGUAGE_MODEL_TOKENS)
SIZES = {"d_model": 16, "d_ff": 24, "n_heads": 2, "d_k": 8, "d_v": 8}
TEXT = "a <mask> dog"


def language_model(kind: str) -> LanguageModel:
    torch.manual_seed(1)
    n = TOKENIZER.size
    if kind == "span-corruption":
        config = ModelConfig(n_encoder_layers=3, n_decoder_layers=2, src_vocab_size=n, tgt_vocab_size=n, **SIZES)
        search = SearchConfig(max_extra_tokens=2)
        return SpanLanguageModel(Transformer(config), TOKENIZER, search, max_length=40)
    config = LanguageModelConfig(n_layers=3, vocab_size=n, is_causal=kind == "causal-lm", n_positions=40, **SIZES)
    kinds = {"causal-lm": CausalLanguageModel, "masked-lm": MaskedLanguageModel}
    return kinds[kind](TransformerLM.from_config(config), TOKENIZER, max_length=40)


def test_a_causal_model_has_a_target_alone() -> None:
    maps = attention_of_text(language_model("causal-lm"), "a dog")
    assert list(maps.by_kind) == ["decoder"]
    assert maps.tgt_tokens == ("<s>", "▁", "a", "▁", "d", "o", "g", "\n")
    assert maps.tgt_predicted == ("▁", "a", "▁", "d", "o", "g", "\n", "</s>")
    assert maps.src_tokens == ()
    assert maps.decoder is not None
    assert maps.decoder.shape == (3, 2, 8, 8)
    assert np.allclose(maps.decoder.sum(axis=-1), 1, atol=1e-5)


def test_a_masked_model_has_a_source_alone() -> None:
    maps = attention_of_text(language_model("masked-lm"), TEXT)
    assert list(maps.by_kind) == ["encoder"]
    assert maps.src_tokens == ("<s>", "▁", "a", "▁", "<mask>", "▁", "d", "o", "g", "\n")
    assert maps.encoder is not None
    assert maps.encoder.shape == (3, 2, 10, 10)
    assert maps.encoder[..., 0, 5:].min() > 0  # both sides


def test_a_model_of_missing_spans_has_both() -> None:
    maps = attention_of_text(language_model("span-corruption"), TEXT)
    assert list(maps.by_kind) == ["encoder", "decoder", "cross"]
    assert "<extra_id_0>" in maps.src_tokens
    assert (maps.tgt_tokens[0], maps.tgt_predicted[-1]) == ("<s>", "</s>")


def test_the_page_takes_each() -> None:
    for kind in ("causal-lm", "masked-lm", "span-corruption"):
        page = attention_page([attention_of_text(language_model(kind), TEXT)], title="texts")
        assert '"maps":{"' in page


def test_what_is_refused() -> None:
    with pytest.raises(DataError, match="40"):
        attention_of_text(language_model("causal-lm"), "long " * 20)
    with pytest.raises(ShapeError, match="no weights"):
        AttentionMaps("a", "b", ("a",), ("<s>",), ("b",))
