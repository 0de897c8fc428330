"""What every engine does: a new one needs an entry in ``ENGINES``. Engines are asked for plain Python only.

Without torch, its own engine is left out; what it answers is on file.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine_answers import MODELS, ON_FILE, PROMPTS, SOURCES, V, answers
from random_models import stored_model
from said import naming
from transduce.config import GreedySearchConfig, InferencePrecision, ModelConfig, SampledSearchConfig, SearchConfig
from transduce.config.decoding import DecodingOptions
from transduce.errors import ConfigError
from transduce.inference import Translator
from transduce.inference.engine import (
    PLAIN_RUN,
    Constraints,
    Engine,
    EngineSettings,
    ForcedPair,
    ForcedScores,
    Request,
    Run,
    in_batches,
)
from transduce.inference.engines import ENGINES, make_engine
from transduce.model.shortlist import Shortlist
from transduce.search import DraftLength, Hypothesis, PassCounts
from transduce.text import EOS_ID, Tokenizers, byte_tokenizer

UNK_ID = 3
BEAM, GREEDY = SearchConfig(beam_size=3, n_best=3), GreedySearchConfig()
SAMPLED = SampledSearchConfig(seed=3)
SEARCHES = [BEAM, GREEDY, SAMPLED]


class Maker:
    """Makes engines of the kind that is tested; skips the test where there is none."""

    def __init__(self, name: str, folder: Path) -> None:
        if name == "torch":
            pytest.importorskip("torch")
        self.name, self.folder = name, folder

    def __call__(self, kind: str = "text", *, seed: int = 1, dtype: str = "float32", **settings: Any) -> Engine:
        """Make the engine of a random model."""
        model = stored_model(MODELS[kind], self.folder, seed=seed, dtype=dtype)
        engine = ENGINES[self.name]([model], EngineSettings(**settings))
        return pytest.skip(f"no engine for {kind} and {settings}") if engine is None else engine


@pytest.fixture(scope="module", params=ENGINES)
def make(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Maker:
    return Maker(request.param, tmp_path_factory.mktemp("models"))


def require_near(got: Any, expected: Any) -> None:
    if isinstance(expected, list):
        assert len(got) == len(expected)
        for each, other in zip(got, expected, strict=True):
            require_near(each, other)
    else:
        assert got == expected if isinstance(expected, int) else got == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("kind", MODELS)
def test_its_answers_are_on_file(make: Maker, kind: str) -> None:
    expected = json.loads(ON_FILE.read_text())[kind]
    require_near(answers(kind, make(kind)), expected)
    require_near(answers(kind, make(kind, dtype="float64")), expected)


def requests(constraints: Constraints | None = None, max_length: int = 12) -> list[Request]:
    return [Request(max_length, source, constraints=constraints or Constraints()) for source in SOURCES]


def found(engine: Engine, asked: Sequence[Request], search: SearchConfig, **options: Any) -> list[Any]:
    results = engine.hypotheses(asked, search, Run(**options))
    assert results is not None
    return results


def best_ids(engine: Engine, asked: Sequence[Request], search: SearchConfig) -> list[tuple[int, ...]]:
    return [n_best[0].ids for n_best in found(engine, asked, search)]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_hypotheses_are_plain_and_no_longer_than_asked(make: Maker, search: SearchConfig) -> None:
    for n_best in found(make(), requests(max_length=9), search):
        assert 1 <= len(n_best) <= search.n_best
        for each in n_best:
            assert type(each) is Hypothesis
            assert all(type(id) is int and UNK_ID <= id < V for id in each.ids)
            assert len(each.ids) + each.is_finished <= 9
            assert type(each.log_prob) is type(each.score) is float
            assert each.is_finished or len(each.ids) == 9
        assert [each.score for each in n_best] == sorted((each.score for each in n_best), reverse=True)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_nothing_depends_on_the_rest_of_the_batch(make: Maker, search: SearchConfig) -> None:
    engine, asked = make(), requests()
    together = found(engine, asked, search)
    one_by_one = search.model_copy(update={"max_tokens_per_batch": 1})
    for other in (found(engine, asked[::-1], search)[::-1], found(engine, asked, one_by_one)):
        assert [[each.ids for each in n_best] for n_best in other] == [[each.ids for each in n] for n in together]
        scores = [[each.score for each in n_best] for n_best in other]
        for got, n_best in zip(scores, together, strict=True):
            assert got == pytest.approx([each.score for each in n_best], abs=1e-4)


def test_a_beam_finds_at_least_what_greedy_search_finds(make: Maker) -> None:
    engine, plain = make(), BEAM.model_copy(update={"alpha": 0.0})
    for beam, greedy in zip(found(engine, requests(), plain), found(engine, requests(), GREEDY), strict=True):
        assert beam[0].log_prob >= greedy[0].log_prob - 1e-4 or not beam[0].is_finished


def test_ids_may_be_arrays(make: Maker) -> None:
    arrays = [Request(12, np.array(source, np.int32)) for source in SOURCES]
    for search in SEARCHES:
        assert best_ids(make(), arrays, search) == best_ids(make(), requests(), search)


def test_draws_follow_from_the_seed(make: Maker) -> None:
    engine = make()
    one, again, other = (best_ids(engine, requests(), SAMPLED.model_copy(update={"seed": seed})) for seed in (1, 1, 2))
    assert one == again != other
    numbered = [Request(12, SOURCES[0], number=number) for number in (1, 1, 2)]
    first, same, different = best_ids(engine, numbered, SAMPLED)
    assert first == same != different
    cold = SAMPLED.model_copy(update={"temperature": 0.0})
    assert best_ids(engine, requests(), cold) == best_ids(engine, requests(), GREEDY)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_suppressed_ids_are_not_written(make: Maker, search: SearchConfig) -> None:
    free = Counter(id for ids in best_ids(make(), requests(), search) for id in ids)
    suppressed = [id for id, _ in free.most_common(3)]
    written = {id for ids in best_ids(make(suppressed_ids=suppressed), requests(), search) for id in ids}
    assert written
    assert not written & set(suppressed)


@pytest.mark.parametrize("search", [BEAM, GREEDY], ids=lambda search: search.kind)
def test_a_prefix_is_kept_and_scored_by_the_model(make: Maker, search: SearchConfig) -> None:
    engine, prefix = make(word_start_ids=lambda: [EOS_ID, *range(20, V)]), [25, 7]
    for starts_word in (False, True):
        for n_best in found(engine, requests(Constraints(prefix, starts_word=starts_word)), search):
            for each in n_best:
                assert list(each.ids[:2]) == prefix
                assert not starts_word or len(each.ids) == 2 or each.ids[2] >= 20
    [best], source = found(engine, [Request(9, SOURCES[0], constraints=Constraints(prefix))], search)[0][:1], SOURCES[0]
    target = [*best.ids, *[EOS_ID] * best.is_finished]
    [score] = engine.forced_scores([ForcedPair(source, target)], max_tokens=100)
    assert best.log_prob == pytest.approx(score.log_prob, abs=1e-3)


@pytest.mark.parametrize("search", [BEAM, GREEDY], ids=lambda search: search.kind)
@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        ({"avoided": [[25]]}, {}),
        ({"max_repeats": [1]}, {}),
        ({"allowed": lambda prefix: range(4, 20)}, {}),
        ({}, {"no_repeat_ngram": 2}),
        ({"prefix": [25, EOS_ID], "phrases": [[9]]}, {}),
        ({"prefix": [25, EOS_ID]}, {"min_length": 4}),
    ],
)
def test_no_rule_touches_a_prefix(
    make: Maker, search: SearchConfig, rule: dict[str, Any], settings: dict[str, int]
) -> None:
    engine, prefix = make(), rule.setdefault("prefix", [25, 25, 25])
    [best], _ = found(engine, requests(Constraints(**rule))[:2], search.model_copy(update={"n_best": 1, **settings}))
    target = [*best.ids, *[EOS_ID] * best.is_finished]
    assert target[: len(prefix)] == prefix
    [score] = engine.forced_scores([ForcedPair(SOURCES[0], target)], max_tokens=100)
    assert best.log_prob == pytest.approx(score.log_prob, abs=1e-3)


@pytest.mark.parametrize("search", [BEAM, GREEDY], ids=lambda search: search.kind)
def test_only_allowed_ids_are_written(make: Maker, search: SearchConfig) -> None:
    def alternating(prefix: tuple[int, ...]) -> list[int]:
        return [EOS_ID] if len(prefix) == 5 else [10, 11] if len(prefix) % 2 else [12]

    plain, pooled = (Constraints(allowed=alternating, pooled=ids) for ids in ((), range(4, V)))
    for of_plain, of_pooled in zip(*(found(make(), requests(each), search) for each in (plain, pooled)), strict=True):
        for each in (*of_plain, *of_pooled):
            assert [id in (10, 11) if place % 2 else id == 12 for place, id in enumerate(each.ids)] == [True] * 5
        assert of_pooled[0].log_prob > of_plain[0].log_prob


@pytest.mark.parametrize("search", [BEAM, GREEDY], ids=lambda search: search.kind)
def test_units_repeat_as_often_as_they_may(make: Maker, search: SearchConfig) -> None:
    for ids in best_ids(make(), requests(Constraints(max_repeats=[1] * 8)), search):
        assert all(a != b for a, b in pairwise(ids))


@pytest.mark.parametrize("search", [BEAM, GREEDY], ids=lambda search: search.kind)
def test_wanted_phrases_are_written_and_avoided_ones_are_not(make: Maker, search: SearchConfig) -> None:
    """Random models seldom end, so that what counts is that the phrases are there at the greatest length."""
    engine, inside = make(word_inside_ids=lambda: [20, 21]), (20, 21)
    wanted, avoided = [[9, 10], [4], [4]], [[8], [11, 12]]
    for n_best in found(engine, requests(Constraints(phrases=wanted, avoided=avoided), max_length=20), search):
        best = [*n_best[0].ids, 0]
        assert any(
            each[:2] == (9, 10) and each[2] not in inside for each in zip(best, best[1:], best[2:], strict=False)
        )
        assert sum(id == 4 and after not in inside for id, after in pairwise(best)) >= 2
        for each in n_best:
            assert 8 not in each.ids
            assert (11, 12) not in pairwise(each.ids)


def test_phrases_go_with_a_prefix_and_without_a_draft(make: Maker) -> None:
    engine, constraints = make(), Constraints([25, 7], phrases=[[7, 9]], avoided=[[25]])
    plain = best_ids(engine, requests(constraints), BEAM)
    for ids in plain:
        assert list(ids[:2]) == [25, 7]
        assert (7, 9) in pairwise(ids)
    drafted = engine.with_draft(make(seed=2), DraftLength(3))
    only = Constraints(phrases=[[7, 9]])
    assert best_ids(drafted, requests(only), GREEDY) == best_ids(engine, requests(only), GREEDY)
    with pytest.raises(ConfigError, match=naming("constraints")):
        engine.hypotheses(requests(only), SAMPLED)


@pytest.mark.parametrize("search", [BEAM, GREEDY], ids=lambda search: search.kind)
def test_phrases_of_others_change_no_output(make: Maker, search: SearchConfig) -> None:
    """Their beam is wider."""
    engine, asked = make(), [*requests()[:2], *requests(Constraints(phrases=[[9, 10]]))[2:]]
    assert best_ids(engine, asked, search) == [best_ids(engine, [each], search)[0] for each in asked]


def test_a_shortlist_bounds_what_is_written(make: Maker) -> None:
    candidates_VR = np.full((V, 2), 20, np.int32)
    engine = make(shortlist=Shortlist(candidates_VR, np.array([21, 22], np.int32)))
    for search in SEARCHES:
        assert {id for ids in best_ids(engine, requests(), search) for id in ids} <= {UNK_ID, 20, 21, 22}
    with pytest.raises(ConfigError, match=naming("prefix", "shortlist")):
        engine.hypotheses(requests(Constraints([20])), GREEDY)


def test_drafts_change_no_output(make: Maker) -> None:
    engine = make()
    drafted = engine.with_draft(make(seed=2), DraftLength(3))
    assert best_ids(drafted, requests(), GREEDY) == best_ids(engine, requests(), GREEDY)
    assert drafted.counts.sentences == len(SOURCES)
    assert engine.counts.sentences == 0
    most, _ = Counter(id for ids in best_ids(engine, requests(), GREEDY) for id in ids).most_common(1)[0]
    for rules in (Constraints(avoided=[[most]]), Constraints([25, 7]), Constraints(max_repeats=[1])):
        assert best_ids(drafted, requests(rules), GREEDY) == best_ids(engine, requests(rules), GREEDY)


def test_a_sample_does_not_depend_on_which_others_are_too_long_for_a_draft(make: Maker) -> None:
    config = MODELS["text"].model_copy(update={"positions": "learned", "n_positions": 12})
    short = ENGINES[make.name]([stored_model(config, make.folder)], EngineSettings())
    assert short is not None
    drafted = make().with_draft(short, DraftLength(3))
    asked = [Request(8, SOURCES[0]), Request(20, SOURCES[1])]
    assert best_ids(drafted, asked, SAMPLED) == [best_ids(drafted, [each], SAMPLED)[0] for each in asked]
    assert drafted.counts.drafted > 0


def test_it_can_be_interrupted_and_tells_its_progress(make: Maker) -> None:
    engine, done, answers = make(), list[int](), iter([False, False, True])
    one_by_one = GREEDY.model_copy(update={"max_tokens_per_batch": 1})
    assert engine.hypotheses(requests(), one_by_one, Run(should_stop=lambda: next(answers), report=done.append)) is None
    assert done == [1, 2]
    assert engine.hypotheses([], GREEDY) == []
    steps = list[int]()
    engine.on_step = lambda: steps.append(1)
    longest = max(len(n_best[0].ids) + n_best[0].is_finished for n_best in found(engine, requests(), GREEDY))
    assert len(steps) == longest


def test_unscored_greedy_search_writes_the_same(make: Maker) -> None:
    scored, unscored = (found(make(), requests(), GREEDY, is_scored=is_scored) for is_scored in (True, False))
    assert [each.ids for (each,) in scored] == [each.ids for (each,) in unscored]


def test_forced_scores(make: Maker) -> None:
    engine, targets = make(), [[6, 7, EOS_ID], [EOS_ID], [4, 4, 4, 4, EOS_ID], [9, EOS_ID]]
    pairs = [ForcedPair(*each) for each in zip(SOURCES, targets, strict=True)]
    scores = engine.forced_scores(pairs, max_tokens=1000, has_attention=True)
    for pair, score in zip(pairs, scores, strict=True):
        assert type(score.log_prob) is float
        assert score.log_prob == pytest.approx(math.fsum(score.log_probs_T), abs=1e-9)
        assert score.log_probs_T.shape == (len(pair.target),)
        assert isinstance(score.attention_TS, np.ndarray)
        assert score.attention_TS.shape == (len(pair.target), len(pair.source))
        np.testing.assert_allclose(score.attention_TS.sum(1), 1, atol=1e-5)
    alone = [engine.forced_scores([pair], max_tokens=1)[0].log_prob for pair in pairs]
    assert alone == pytest.approx([each.log_prob for each in scores], abs=1e-4)


def test_next_tokens_are_the_most_probable(make: Maker) -> None:
    engine = make()
    [[best]] = engine.next_tokens([Request(1, SOURCES[0], constraints=Constraints([8]))], 5)
    probabilities = [p for _, p in best]
    assert len(best) == 5
    assert probabilities == sorted(probabilities, reverse=True)
    for id, p in best[:2]:
        [score] = engine.forced_scores([ForcedPair(SOURCES[0], [8, id, EOS_ID])], max_tokens=100)
        assert p >= math.exp(score.log_probs_T[1]) * (1 - 1e-4)  # renormalised without padding and BOS


def prompts(max_length: int = 9, **constraints: Any) -> list[Request]:
    asked = enumerate(PROMPTS)
    return [Request(max_length, prompt=ids, constraints=Constraints(**constraints), number=n) for n, ids in asked]


def test_prompts_give_together_what_they_give_alone(make: Maker) -> None:
    engine = make("prompts", window=6, suppressed_ids=[0, 1, 7])
    together = best_ids(engine, prompts(20), SAMPLED)
    assert together == [best_ids(engine, [each], SAMPLED)[0] for each in prompts(20)]
    assert max(map(len, together)) > 6  # the window slides
    assert not {id for ids in together for id in ids} & {0, 1, 7}
    assert together != best_ids(engine, prompts(20), SAMPLED.model_copy(update={"seed": 4}))
    seen = dict[int, list[int]]()
    found(engine, prompts(), SAMPLED, on_ids=lambda number, ids: seen.update({number: list(ids)}))
    ends = [[EOS_ID] * best.is_finished for (best,) in found(engine, prompts(), SAMPLED)]
    assert [seen[n] for n in range(4)] == [
        [*ids, *end] for ids, end in zip(best_ids(engine, prompts(), SAMPLED), ends, strict=True)
    ]


def test_learned_positions_are_those_of_each_prompt(tmp_path: Path) -> None:
    """A long prompt leaves before a short one, whose positions go on from its own length."""
    pytest.importorskip("torch")
    config = MODELS["prompts"].model_copy(update={"positions": "learned", "n_positions": 8})
    settings = EngineSettings(window=8, suppressed_ids=[0, 1, EOS_ID])
    engine = ENGINES["torch"]([stored_model(config, tmp_path)], settings)
    assert engine is not None
    long, short = (Request(n, prompt=[1, *[5] * (8 - n)], number=n) for n in (2, 7))
    assert best_ids(engine, [long, short], SAMPLED) == [best_ids(engine, [each], SAMPLED)[0] for each in (long, short)]


def test_samples_that_are_interrupted_are_returned_so_far(make: Maker) -> None:
    engine, answers = make("prompts", suppressed_ids=[EOS_ID]), iter([False, False, True])
    cut = found(engine, prompts(), SAMPLED, should_stop=lambda: next(answers))
    whole = best_ids(engine, prompts(), SAMPLED)
    assert [each.ids for (each,) in cut] == [ids[:2] for ids in whole]
    numbers = found(engine, prompts(), SAMPLED, draws=lambda rows: [0.0 for _ in rows])
    assert {id for (each,) in numbers for id in each.ids} == {0}  # the lowest id


def test_prompts_are_continued_by_a_beam_and_scored(make: Maker) -> None:
    engine = make("prompts", window=12, suppressed_ids=[0, 1], word_start_ids=lambda: [20, 21])
    beam = SearchConfig(beam_size=3, alpha=0.0)
    for asked, (best,) in zip(prompts(), found(engine, prompts(), beam), strict=True):
        [score] = engine.forced_scores(
            [ForcedPair(asked.prompt, [*best.ids, *[EOS_ID] * best.is_finished])], max_tokens=100
        )
        assert best.log_prob == pytest.approx(score.log_prob, abs=1e-3)
    for search in (beam, SAMPLED):
        assert {ids[0] for ids in best_ids(engine, prompts(starts_word=True), search)} <= {20, 21}


def test_a_beam_of_one_is_greedy(make: Maker) -> None:
    """Each token is the most probable one, up to the first end."""
    one, cold = SearchConfig(beam_size=1, alpha=0.0), SAMPLED.model_copy(update={"temperature": 0.0})
    for seed in (1, 8):
        engine = make("prompts", seed=seed, window=12, suppressed_ids=[0, 1])
        assert best_ids(engine, prompts(8), one) == best_ids(engine, prompts(8), cold)


def test_a_beam_of_prompts_obeys_its_limits(make: Maker) -> None:
    engine, beam = make("prompts", seed=8, suppressed_ids=[0, 1]), SearchConfig(beam_size=3, n_best=3)

    def written(**limits: Any) -> list[tuple[int, ...]]:
        limited = DecodingOptions(n_best=3, **limits).applied_to(beam)
        return [each.ids for n_best in found(engine, prompts(), limited) for each in n_best]

    assert min(map(len, written())) < 5
    assert min(map(len, written(min_length=5))) >= 5
    assert any(len(set(ids)) < len(ids) for ids in written(min_length=7))
    assert all(len(set(ids)) == len(ids) >= 7 for ids in written(min_length=7, no_repeat_ngram=1))
    for limits in ({"min_length": 5}, {"no_repeat_ngram": 1}):
        with pytest.raises(ConfigError, match=naming(*limits, "sampling")):
            DecodingOptions(**limits).applied_to(SAMPLED)


@dataclass
class EchoEngine:
    """A whole engine: it writes what it reads."""

    on_step: Callable[[], object] | None = None
    counts: PassCounts = field(default_factory=PassCounts)
    max_positions: int = 100
    is_left_to_right: bool = True

    def with_draft(self, draft: EchoEngine, length: DraftLength, /) -> EchoEngine:
        return self

    def hypotheses(
        self, requests: Sequence[Request], search: SearchConfig, run: Run = PLAIN_RUN, /
    ) -> list[tuple[Hypothesis, ...]] | None:
        def echoed(batch: Sequence[Request]) -> list[tuple[Hypothesis, ...]]:
            kept = [[*each.constraints.prefix, *map(int, each.source[:-1])] for each in batch]
            return [(Hypothesis(tuple(ids), -1.0, -1.0, is_finished=True),) for ids in kept]

        return in_batches(
            requests, lambda each: len(each.source), echoed, max_tokens=search.max_tokens_per_batch,
            should_stop=run.should_stop, report=run.report,
        )  # fmt: skip

    def forced_scores(self, pairs: Sequence[ForcedPair], **_: Any) -> list[ForcedScores]:
        return [ForcedScores(-1.0, np.full(len(each.target), -1.0)) for each in pairs]

    def next_tokens(self, requests: Sequence[Request], n: int) -> list[list[list[tuple[int, float]]]]:
        return [[[(65, 0.5)][:n]] for _ in requests]

    def rewards(self, pairs: Sequence[ForcedPair]) -> list[float]:
        return [0.0 for _ in pairs]


def test_an_engine_is_one_class_and_its_entry(tmp_path: Path) -> None:
    def make_echo(models: Sequence[Any], settings: EngineSettings) -> Engine | None:
        return EchoEngine() if settings.precision == "fp32" else None

    others = dict(ENGINES)
    ENGINES.clear()
    try:
        ENGINES.update({"the first": make_echo, **others})
        tokenizer = byte_tokenizer()
        config = ModelConfig(
            n_encoder_layers=1, n_decoder_layers=1, d_model=8, d_ff=8, n_heads=1, d_k=8, d_v=8,
            src_vocab_size=tokenizer.size, tgt_vocab_size=tokenizer.size,
        )  # fmt: skip
        tokenizers = Tokenizers(tokenizer, tokenizer)
        model = stored_model(config, tmp_path)
        translator = Translator(model, tokenizers, SearchConfig(), direction="en-en")
        assert isinstance(translator.engine, EchoEngine)
        texts = ["The dog sleeps. A cat sees it.", "", "Yes!"]
        assert translator.translate(texts) == texts
        assert translator.translate(["dog"], prefix="the ") == ["the dog"]
        assert translator.translate(["<p>A <b>cat</b> sleeps.</p>"], format="html") == ["<p>A <b>cat</b> sleeps.</p>"]
        assert not isinstance(make_engine(model, settings=EngineSettings("bf16")), EchoEngine)
    finally:
        ENGINES.clear()
        ENGINES.update(others)


def test_another_distribution_adds_an_engine_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(
        make=lambda models, settings: EchoEngine() if settings.precision == "fp32" else None,
        reason_against=lambda models: "it is precise",
    )
    monkeypatch.setitem(sys.modules, "echoing", module)
    added = [EntryPoint(name, name + "ing", "transduce.engines") for name in ("echo", "miss")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: added if group == added[0].group else [])
    model = stored_model(MODELS["text"], tmp_path)

    def made(engine: str, precision: InferencePrecision = "fp32") -> str:
        return type(make_engine(model, settings=EngineSettings(precision, engine=engine))).__name__

    assert made("echo") == "EchoEngine" != made("auto")
    for refused, facts in (
        (("echo", "bf16"), ["echo", "it is precise"]),
        (("ecko",), ["auto", *ENGINES, "echo", "'ecko'"]),
        (("miss",), ["'miss'", "missing"]),
    ):
        with pytest.raises(ConfigError, match=naming(*facts)):
            made(*refused)
    monkeypatch.setenv("TRANSDUCE_ENGINE", "echo")
    assert made("auto") == "EchoEngine" != made("native")
