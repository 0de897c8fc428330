"""The engine in C writes what PyTorch's writes, with the same bits alone and in a batch."""

from __future__ import annotations

from dataclasses import replace
from threading import get_ident
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from said import naming
from transduce.config import (
    GreedySearchConfig,
    InferencePrecision,
    LanguageModelConfig,
    ModelConfig,
    SampledSearchConfig,
    SearchConfig,
    TransformerConfig,
)
from transduce.errors import ConfigError, SearchError
from transduce.inference.engine import NO_CONSTRAINTS, Constraints, Engine, EngineSettings, ForcedPair, Request, Run
from transduce.inference.engines import make_engine
from transduce.inference.engines.native import make as native_engine
from transduce.inference.engines.torch import make as torch_engine
from transduce.inference.native.binding import library
from transduce.inference.native.call import KNOWN as KNOWN_OF_SEARCHES
from transduce.inference.native.engine import NativeEngine
from transduce.inference.native.model import KNOWN, reason_against_config
from transduce.model import Transformer, TransformerLM, make_model
from transduce.model.attention import MultiHeadAttention, SelfAttention
from transduce.model.inference import int8_linear_reference
from transduce.model.shortlist import Shortlist
from transduce.model.word_positions import WordPositionFrontEnd
from transduce.search import DraftLength, Hypothesis
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


def requests(search: SearchConfig | None = None) -> list[Request]:
    random = np.random.default_rng(1)
    sources = [[*random.integers(4, V, size).tolist(), EOS_ID] for size in random.integers(1, 20, 9)]
    constraints = NO_CONSTRAINTS if isinstance(search, SampledSearchConfig) else Constraints(max_repeats=[2, 1])
    return [Request(len(source) + 10, source, constraints=constraints) for source in sources]


def require_near(got: list[tuple[Hypothesis, ...]], expected: list[tuple[Hypothesis, ...]], **tolerance: float) -> None:
    for n_best, wanted in zip(got, expected, strict=True):
        assert [(each.ids, each.is_finished) for each in n_best] == [(each.ids, each.is_finished) for each in wanted]
        for name in ("score", "log_prob"):
            numbers, wanted_numbers = ([getattr(each, name) for each in of] for of in (n_best, wanted))
            assert numbers == pytest.approx(wanted_numbers, **tolerance)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_it_writes_what_the_reference_writes(changes: dict[str, Any]) -> None:
    model = random_model(**changes)
    reference = torch_engine([model], EngineSettings())
    for search in SEARCHES:
        got, expected = (engine.hypotheses(requests(search), search) for engine in (native(model), reference))
        assert got is not None
        assert expected is not None
        require_near(got, expected, abs=1e-4)


MEDIA: dict[str, dict[str, Any]] = {
    "patches": {"source": "patches", "source_width": 12, "patch_height": 4, "patch_width": 3},
    "frames": {"source": "frames", "source_width": 20, "embeddings": "separate"},
    "frames, pre-norm, learned positions": {
        "source": "frames", "source_width": 9, "positions": "learned", "n_positions": 30, "norm": "pre",
    },
}  # fmt: skip


def media_requests(model: Transformer) -> list[Request]:
    random, width = np.random.default_rng(1), model.config.source_width
    is_image = model.config.source == "patches"
    features = [
        random.integers(0, 256, (n, width)).astype(np.uint8) if is_image else random.normal(size=(n, width))
        for n in (37, 5, 64, 1, 200)
    ]
    return [Request(20, each if is_image else each.astype(np.float16)) for each in features]


@pytest.mark.parametrize("changes", MEDIA.values(), ids=MEDIA)
def test_it_reads_images_and_audio_as_the_reference(changes: dict[str, Any]) -> None:
    model = random_model(**changes)
    own, reference, asked = native(model), torch_engine([model], EngineSettings()), media_requests(model)
    for search in (SEARCHES[0], *SEARCHES[2:]):
        got, expected = own.hypotheses(asked, search) or [], reference.hypotheses(asked, search) or []
        assert got == [(own.hypotheses([each], search) or [])[0] for each in asked]
        require_near(got, expected, abs=1e-5, rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_front_ends_have_the_types_of_files(dtype: torch.dtype) -> None:
    model = random_model(**MEDIA["patches"]).to(dtype)
    asked, rounded = media_requests(model), random_model(**MEDIA["patches"])
    rounded.load_state_dict({name: each.float() for name, each in model.state_dict().items()})
    assert native(model).hypotheses(asked, SEARCHES[0]) == native(rounded).hypotheses(asked, SEARCHES[0])


@pytest.mark.parametrize("search", SEARCHES[2:], ids=lambda search: search.kind)
@pytest.mark.parametrize("has_shortlist", [False, True])
def test_drafts_are_drawn_and_kept_as_by_the_reference(search: SearchConfig, has_shortlist: bool) -> None:
    random = np.random.default_rng(3)
    candidates_VR, frequent_P = random.integers(4, V, (V, 9)).astype(np.int32), np.arange(4, 20, dtype=np.int32)
    settings = EngineSettings(shortlist=Shortlist(candidates_VR, frequent_P) if has_shortlist else None)
    models = [random_model(), random_model()]
    with torch.no_grad():
        for weight in models[1].parameters():
            weight.mul_(1 + 0.1 * torch.randn_like(weight))
    own, reference = native(models[0]), torch_engine(models[:1], EngineSettings())
    small, small_reference = native_engine(models[1:], settings), torch_engine(models[1:], settings)
    assert small is not None
    for length in (DraftLength(4), DraftLength(3, 0.2)):
        drafted, expected = own.with_draft(small, length), reference.with_draft(small_reference, length)
        asked = [replace(each, constraints=NO_CONSTRAINTS) for each in requests()]
        got, wanted = drafted.hypotheses(asked, search) or [], expected.hypotheses(asked, search) or []
        require_near(got, wanted, abs=1e-4)
        assert drafted.counts == expected.counts
        assert 0 < drafted.counts.accepted < drafted.counts.drafted


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_every_bit_is_that_of_the_sentence_alone(precision: InferencePrecision) -> None:
    engine = native(random_model(), precision)
    for search in SEARCHES[1:3]:
        together = engine.hypotheses(requests(search), search)
        alone = [engine.hypotheses([each], search) for each in requests(search)]
        assert [[found] for found in together or []] == alone


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("bf16", 0.05), ("int8", 0.1)])
def test_scores_are_those_of_the_model(precision: InferencePrecision, tolerance: float) -> None:
    model = random_model()
    pairs = [ForcedPair(each.source, [*each.source[::-1], EOS_ID]) for each in requests(SEARCHES[0])]  # type: ignore[arg-type]
    expected = torch_engine([model], EngineSettings()).forced_scores(pairs, max_tokens=100, has_attention=True)
    for got, wanted in zip(
        native(model, precision).forced_scores(pairs, max_tokens=100, has_attention=True), expected, strict=True
    ):
        assert np.abs(got.log_probs_T - wanted.log_probs_T).max() < tolerance * 3
        assert got.attention_TS is not None
        assert wanted.attention_TS is not None
        assert np.abs(got.attention_TS - wanted.attention_TS).max() < tolerance


def test_int8_rounds_as_it_is_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(x: Tensor, weight_OI: Tensor, bias_O: Tensor | None = None) -> Tensor:
        with monkeypatch.context() as exact:
            exact.setattr(F, "linear", linear)
            return int8_linear_reference(x.flatten(0, -2), weight_OI, bias_O).unflatten(0, x.shape[:-1])

    def halved(ids: Tensor, weight: Tensor) -> Tensor:
        return embedding(ids, weight.half().float() if weight.requires_grad else weight)

    def kept(self: MultiHeadAttention, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        """The decoder keeps keys and values in bf16."""
        is_kept = not isinstance(self, SelfAttention) or self.is_causal
        return attend(self, q, *((x.bfloat16().float() if is_kept else x) for x in (k, v)), **options)

    model, linear, embedding, attend = random_model(), F.linear, F.embedding, MultiHeadAttention.attend
    pairs = [ForcedPair(each.source, [*each.source[::-1], EOS_ID]) for each in requests()]  # type: ignore[arg-type]
    got = native(model, "int8").forced_scores(pairs, max_tokens=100)
    monkeypatch.setattr(F, "linear", rounded)
    monkeypatch.setattr(F, "embedding", halved)
    monkeypatch.setattr(MultiHeadAttention, "attend", kept)
    expected = torch_engine([model], EngineSettings()).forced_scores(pairs, max_tokens=1)
    differences = [np.abs(a.log_probs_T - b.log_probs_T).max() for a, b in zip(got, expected, strict=True)]
    assert np.median(differences) < 1e-5  # a sum that is rounded otherwise may move an input to another level
    assert max(differences) < 0.03


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_nan_is_an_error(precision: InferencePrecision) -> None:
    for name in ("encoder.1.feed_forward.w_1.weight", "decoder.2.cross_attention.w_kv.weight", "tgt_embedding.weight"):
        model = random_model()
        with torch.no_grad():
            model.canonical()[name].view(-1)[7] = torch.nan
        for search in SEARCHES:
            with pytest.raises(SearchError, match=naming("sentence", "NaN")):
                native(model, precision).hypotheses(requests(search), search)


def test_an_infinite_logit_is_an_error() -> None:
    model = random_model(output_bias=True)
    with torch.no_grad():
        model.canonical()["output.bias"][7] = torch.inf
    listed = Shortlist(np.full((V, 1), 7, np.int32), np.arange(4, V, dtype=np.int32))
    for search in SEARCHES:
        for shortlist in (None, listed):
            engine = native_engine([model], EngineSettings(shortlist=shortlist))
            assert engine is not None
            with pytest.raises(SearchError, match=naming("sentence")):
                engine.hypotheses(requests(search), search)


@pytest.mark.parametrize("ids", [[V], [-1], [2**31 - 1]], ids=["V", "negative", "largest"])
def test_ids_outside_the_vocabulary_are_refused(ids: list[int]) -> None:
    engine, search = native(random_model()), SearchConfig()
    wrong = [
        Request(5, [*ids, EOS_ID]),
        Request(5, [EOS_ID], prompt=ids),
        Request(5, [EOS_ID], constraints=Constraints(ids)),
    ]
    for request in wrong:
        with pytest.raises(IndexError, match=naming(V - 1, ids[0])):
            engine.hypotheses([request], search)
    for pair in (ForcedPair(ids, [EOS_ID]), ForcedPair([EOS_ID], ids)):
        with pytest.raises(IndexError, match=naming(V - 1, ids[0])):
            engine.forced_scores([pair], max_tokens=100)


@pytest.mark.parametrize("window", [None, 9])
def test_texts_beyond_learned_positions_are_refused(window: int | None) -> None:
    engine = native_engine([random_model(positions="learned", n_positions=6)], EngineSettings(window=window))
    assert engine is not None
    assert engine.max_positions == 6
    engine.hypotheses([Request(6, [5] * 6)], SearchConfig())
    for request in (Request(6, [5] * 7), Request(7, [5] * 6), Request(6, [5] * 6, prompt=[5, 5])):
        with pytest.raises(IndexError, match=naming(6, 7)):
            engine.hypotheses([request], SearchConfig())
    own, _ = language_models(EngineSettings(window=9), positions="learned", n_positions=6)
    with pytest.raises(IndexError, match=naming(6, 9)):
        own.hypotheses([Request(9, prompt=[5])], SampledSearchConfig())


LM_VARIANTS: dict[str, dict[str, Any]] = {
    "as GPT": {"positions": "learned", "n_positions": 16, "norm": "pre", "activation": "gelu", "attention_bias": True},
    "sinusoids, a matrix of its own": {"tied_embeddings": False, "output_bias": True},
}
LM_SEARCHES = [
    SampledSearchConfig(seed=5),
    SampledSearchConfig(temperature=0.7, top_k=12, top_p=0.9),
    SampledSearchConfig(temperature=0),
    SearchConfig(beam_size=3, n_best=3, alpha=0.5),
    SearchConfig(beam_size=4, min_length=5, no_repeat_ngram=2),
    SearchConfig(beam_size=1),
]


def language_models(settings: EngineSettings, **changes: Any) -> tuple[Engine, Engine]:
    """The engine in C, and the reference, of a language model."""
    torch.manual_seed(4)
    sizes = {"n_layers": 2, "d_model": 48, "d_ff": 80, "n_heads": 3, "d_k": 16, "d_v": 16, "vocab_size": V}
    model = TransformerLM.from_config(LanguageModelConfig(**sizes, **changes)).eval()
    with torch.no_grad():
        model.output.weight.mul_(2)
    engine = native_engine([model], settings)
    assert engine is not None
    return engine, torch_engine([model], settings)


def listener(heard: list[tuple[int, tuple[int, ...]]]) -> Run:
    return Run(on_ids=lambda number, ids: heard.append((number, tuple(ids))))


@pytest.mark.parametrize("changes", LM_VARIANTS.values(), ids=LM_VARIANTS)
@pytest.mark.parametrize("window", [16, 3, 1])
def test_prompts_are_continued_as_by_the_reference(changes: dict[str, Any], window: int) -> None:
    settings = EngineSettings(suppressed_ids=[0, 1, 9], word_start_ids=lambda: range(30, 50), window=window)
    own, reference = language_models(settings, **changes)
    random = np.random.default_rng(2)
    prompts = [[1, *random.integers(4, V, size).tolist()] for size in random.integers(0, 15, 7)]
    for search in LM_SEARCHES:
        asked = [
            Request(25 + n, prompt=prompt[:window], number=n, constraints=Constraints(starts_word=n % 3 == 1))
            for n, prompt in enumerate(prompts)
        ]
        heard: list[list[tuple[int, tuple[int, ...]]]] = [[], []]
        runs = map(listener, heard)
        got, expected = (each.hypotheses(asked, search, run) for each, run in zip((own, reference), runs, strict=True))
        assert got is not None
        assert expected is not None
        require_near(got, expected, abs=1e-4)
        assert sorted(heard[0]) == sorted(heard[1])


def test_texts_have_the_probabilities_of_the_reference() -> None:
    own, reference = language_models(EngineSettings())
    random = np.random.default_rng(2)
    pairs = [ForcedPair([1, *random.integers(4, V, n)], random.integers(2, V, 1 + n % 5)) for n in range(9)]
    for got, wanted in zip(*(each.forced_scores(pairs, max_tokens=60) for each in (own, reference)), strict=True):
        assert np.abs(got.log_probs_T - wanted.log_probs_T).max() < 1e-5


def test_what_it_does_not_know_is_left_to_others() -> None:
    for changes in ({"n_experts": 4}, {"attention": "restricted"}, {"block_size": 2}, {"compatibility": "dot"}):
        assert native_engine([random_model(**changes)], EngineSettings()) is None
    assert native_engine([random_model(), random_model()], EngineSettings()) is None


def test_what_it_does_not_know_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a setting that it was not told of: a model must not be computed as another one."""
    monkeypatch.setattr("transduce.inference.native.model.KNOWN", KNOWN - {"norm_eps"})
    assert reason_against_config(TransformerConfig()) is None
    assert reason_against_config(TransformerConfig(norm_eps=1e-5)) == "it does not know norm_eps = 1e-05"
    rotary = TransformerConfig().model_copy(update={"positions": "rotary", "norm": "both"})
    assert reason_against_config(rotary) == "it does not know positions = 'rotary' and norm = 'both'"


def test_searches_that_it_does_not_know_are_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    model, smaller, steps = random_model(), random_model(n_decoder_layers=1), list[int]()
    search, known = GreedySearchConfig(no_repeat_ngram=2), GreedySearchConfig()
    asked = requests()
    own, expected = native(model), torch_engine([model], EngineSettings()).hypotheses(asked, search)
    monkeypatch.setattr("transduce.inference.native.call.KNOWN", KNOWN_OF_SEARCHES - {"no_repeat_ngram"})
    own.on_step = lambda: steps.append(1)
    assert own.hypotheses(asked, search) == expected
    assert steps
    assert own.hypotheses(asked, known) == native(model).hypotheses(asked, known)
    assert own.with_draft(native(smaller), DraftLength(2)).hypotheses(asked, known) is not None
    with pytest.raises(ConfigError, match=naming("no_repeat_ngram", "draft")):
        own.with_draft(native(smaller), DraftLength(2)).hypotheses(requests(SampledSearchConfig()), search)
    by_name = make_engine(model, settings=EngineSettings(engine="native"))
    with pytest.raises(ConfigError, match=naming("the engine in C", "no_repeat_ngram = 2", "auto")):
        by_name.hypotheses(asked, search)


def test_one_thread_counts_what_several_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.inference.native.engine.n_usable_threads", lambda: 4)
    engine, counted_in = native(random_model()), list[int]()
    count = NativeEngine._count
    monkeypatch.setattr(
        NativeEngine, "_count", lambda self, *numbers: (counted_in.append(get_ident()), count(self, *numbers))[1]
    )
    engine.hypotheses([Request(9, [5, 6, EOS_ID])] * 8, SampledSearchConfig())
    assert (counted_in, engine.counts.sentences) == ([get_ident()] * 4, 8)
