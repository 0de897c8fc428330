"""The engine in C writes what PyTorch's writes, with the same bits alone and in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from said import naming
from transduce.config import GreedySearchConfig, InferencePrecision, ModelConfig, SampledSearchConfig, SearchConfig
from transduce.errors import SearchError
from transduce.inference.engine import Constraints, Engine, EngineSettings, ForcedPair, Request
from transduce.inference.engines.native import make as native_engine
from transduce.inference.native.library import library
from transduce.inference.torch_engine import torch_engine
from transduce.model import Transformer, make_model
from transduce.model.word_positions import WordPositionFrontEnd
from transduce.text import EOS_ID

pytestmark = pytest.mark.skipif(library() is None, reason="the engine in C was not compiled")

V = 61
SIZES = {
    "n_encoder_layers": 2, "n_decoder_layers": 3, "d_model": 64, "d_ff": 96, "n_heads": 4, "d_k": 16, "d_v": 16,
    "src_vocab_size": V, "tgt_vocab_size": V,
}  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "pre-norm, learned positions, biases": {
        "norm": "pre", "positions": "learned", "n_positions": 80, "attention_bias": True, "output_bias": True,
    },
    "gelu, odd widths": {
        "activation": "gelu", "d_model": 36, "d_ff": 51, "n_heads": 3, "d_k": 7, "d_v": 9, "embeddings": "separate",
    },
    "gelu-tanh, wide heads": {"activation": "gelu-tanh", "n_heads": 1, "d_k": 33, "d_v": 5, "embeddings": "target"},
    "swish, unscaled": {"activation": "swish", "scale_embeddings": False},
    "word positions": {"positions": "words"},
}  # fmt: skip
SEARCHES = [
    SearchConfig(beam_size=4, n_best=4),
    SearchConfig(beam_size=3, min_length=5, no_repeat_ngram=2),
    GreedySearchConfig(),
    SampledSearchConfig(seed=3, temperature=0.8, top_k=9, top_p=0.9),
]


def random_model(**changes: Any) -> Transformer:
    """A model whose biases and norms are not those of a new one, and whose distributions are not too flat."""
    torch.manual_seed(4)
    model = make_model(ModelConfig(**{**SIZES, **changes})).eval()
    assert isinstance(model, Transformer)
    with torch.no_grad():
        for name, weight in model.canonical().items():
            if name.endswith("bias") or "norm" in name:
                weight.add_(torch.randn_like(weight) * 0.1)
        model.output_weight.mul_(0.8)
    for front_end, step in ((model.source, 2), (model.target, 3)):
        if isinstance(front_end, WordPositionFrontEnd):
            front_end.begins_word_V[::step] = 1
    return model


def native(model: Transformer, precision: InferencePrecision = "fp32") -> Engine:
    engine = native_engine([model], EngineSettings(precision))
    assert engine is not None
    return engine


def requests(n: int = 9) -> list[Request]:
    random = np.random.default_rng(1)
    sources = [[*random.integers(4, V, size).tolist(), EOS_ID] for size in random.integers(1, 20, n)]
    return [Request(len(source) + 10, source, constraints=Constraints(max_repeats=[2, 1])) for source in sources]


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_it_writes_what_the_reference_writes(changes: dict[str, Any]) -> None:
    model = random_model(**changes)
    reference = torch_engine([model], EngineSettings())
    for search in SEARCHES:
        asked = requests()
        if isinstance(search, SampledSearchConfig):
            asked = [Request(each.max_length, each.source) for each in asked]
        got, expected = (engine.hypotheses(asked, search) for engine in (native(model), reference))
        assert got is not None
        assert expected is not None
        assert [[each.ids for each in n_best] for n_best in got] == [[e.ids for e in n_best] for n_best in expected]
        for n_best, wanted in zip(got, expected, strict=True):
            assert [each.score for each in n_best] == pytest.approx([each.score for each in wanted], abs=1e-4)
            assert [each.is_finished for each in n_best] == [each.is_finished for each in wanted]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_every_bit_is_that_of_the_sentence_alone(precision: InferencePrecision) -> None:
    engine = native(random_model(), precision)
    for search in SEARCHES[1:3]:
        together = engine.hypotheses(requests(), search)
        alone = [engine.hypotheses([each], search) for each in requests()]
        assert [[found] for found in together or []] == alone


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("bf16", 0.05), ("int8", 0.1)])
def test_scores_are_those_of_the_model(precision: InferencePrecision, tolerance: float) -> None:
    model = random_model()
    pairs = [ForcedPair(each.source, [*each.source[::-1], EOS_ID]) for each in requests()]  # type: ignore[arg-type]
    expected = torch_engine([model], EngineSettings()).forced_scores(pairs, max_tokens=100, has_attention=True)
    for got, wanted in zip(
        native(model, precision).forced_scores(pairs, max_tokens=100, has_attention=True), expected, strict=True
    ):
        assert np.abs(got.log_probs_T - wanted.log_probs_T).max() < tolerance * 3
        assert got.attention_TS is not None
        assert wanted.attention_TS is not None
        assert np.abs(got.attention_TS - wanted.attention_TS).max() < tolerance


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_nan_is_an_error(precision: InferencePrecision) -> None:
    for name in ("encoder.1.feed_forward.w_1.weight", "decoder.2.cross_attention.w_kv.weight", "tgt_embedding.weight"):
        model = random_model()
        with torch.no_grad():
            model.canonical()[name].view(-1)[7] = torch.nan
        for search in SEARCHES:
            with pytest.raises(SearchError, match=naming("sentence", "NaN")):
                native(model, precision).hypotheses(requests(), search)


def test_what_it_does_not_know_is_left_to_others() -> None:
    for changes in ({"n_experts": 4}, {"attention": "restricted"}, {"block_size": 2}, {"compatibility": "dot"}):
        assert native_engine([random_model(**changes)], EngineSettings()) is None
    assert native_engine([random_model(), random_model()], EngineSettings()) is None
