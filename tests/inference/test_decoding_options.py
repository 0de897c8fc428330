"""One record of what a call changes of a search: from the command line, Python and workers to the search."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel
from typer import BadParameter, Typer

from said import naming
from transduce.bulk import TranslationJob
from transduce.cli.decoding import FLAGS, decoding_options
from transduce.config import BeamSearchConfig, GreedySearchConfig, SampledSearchConfig, SearchConfig
from transduce.config.decoding import NO_CHANGES, SEARCH_FIELDS, DecodingOptions, LoadingOptions, sampling_like
from transduce.config.search import Flag, SearchKeywords
from transduce.errors import ConfigError
from transduce.inference import Translator


def test_python_has_every_field_as_a_keyword() -> None:
    assert {*SearchKeywords.__annotations__, "n_best"} == SEARCH_FIELDS.keys()
    assert SEARCH_FIELDS.keys() - FLAGS.keys() == {  # what is set in recipes and in Python only
        "max_extra_tokens", "max_tokens_per_batch", "block_size", "n_lengths",
    }  # fmt: skip


def test_what_is_not_given_stays_the_model_s() -> None:
    model = BeamSearchConfig(beam_size=5, n_best=5, alpha=0.3, max_length=40, min_length=2)
    assert DecodingOptions().applied_to(model) == model.model_copy(update={"n_best": 1})
    assert DecodingOptions(alpha=None, beam_size=2).applied_to(model).beam_size == 2
    assert DecodingOptions(n_best=9).applied_to(model).beam_size == 9
    sampled = DecodingOptions(kind="sampling", seed=4, top_k=3).applied_to(model)
    assert sampled == SampledSearchConfig(alpha=0.3, max_length=40, seed=4, top_k=3)
    assert DecodingOptions(temperature=0.5).applied_to(sampled) == sampled.model_copy(update={"temperature": 0.5})
    assert DecodingOptions(kind="greedy").applied_to(model) == GreedySearchConfig(
        alpha=0.3, max_length=40, min_length=2
    )
    assert DecodingOptions(kind="beam").applied_to(GreedySearchConfig()) == BeamSearchConfig()
    assert DecodingOptions(seed=7).applied_to(GreedySearchConfig()) == GreedySearchConfig()  # it draws nothing
    assert sampling_like(sampled, seed=9).top_k == 3


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(TypeError, match=naming("beam_sise", "beam_size")):
        DecodingOptions(beam_sise=3)  # type: ignore[call-arg]
    for options, facts in (
        (DecodingOptions(temperature=0.5), ["temperature", "'sampling'", "'beam'"]),
        (DecodingOptions(alpha=-1.0), ["alpha", "-1.0"]),
        (DecodingOptions(kind="sampling", n_best=2), ["'sampling'", "n_best 2"]),
        (DecodingOptions(kind="bean"), ["'bean'"]),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigError, match=naming(*facts)):
            options.applied_to(SearchConfig())


def test_workers_get_the_records() -> None:
    job = TranslationJob(
        LoadingOptions([Path("a"), Path("b\udcff")], "auto", shortlist=Path("c")),
        DecodingOptions(n_best=2, alpha=0.25, kind="beam"), "So ", split=False, format="xml",
    )  # fmt: skip
    assert TranslationJob.from_message(job.as_message()) == job


def test_options_reach_the_search_from_python(micro_model: Path) -> None:
    translator, texts = Translator.load(micro_model), ["The dog sleeps.", "The woman sees the old man."]
    short = translator.translate(texts, max_length=2, beam_size=1)
    assert short == translator.translate(texts, search=GreedySearchConfig(alpha=translator.search.alpha, max_length=2))
    assert list(translator.translate_iter(texts, max_length=2, beam_size=1)) == short
    one, again, other = (translator.translate(texts, kind="sampling", seed=seed) for seed in (1, 1, 2))
    assert one == again != other
    with pytest.raises(TypeError, match=naming("beam")):
        translator.translate(texts, beam=2)  # type: ignore[call-overload]


def test_flags_are_made_of_fields() -> None:
    for name, flag in FLAGS.items():
        assert flag.help.endswith("."), name
        assert flag.name.startswith("--"), name


def test_what_a_verb_gets() -> None:
    got = list[DecodingOptions]()

    @decoding_options("alpha", "kind", "seed", "n_best", "temperature", seed="Draw.")
    def verb(text: str, decoding: DecodingOptions = NO_CHANGES, json: bool = False) -> None:
        """Do something."""
        got.append(decoding)

    app = Typer()
    app.command()(verb)
    for words, changes in (
        (["a"], {"seed": 1}),
        (["a", "--alpha", "0", "--seed", "0", "--sample"], {"alpha": 0.0, "seed": 0, "kind": "sampling"}),
        (["--n-best", "3", "a", "--json", "--temperature", "0"], {"n_best": 3, "seed": 1, "temperature": 0.0}),
    ):
        app(words, standalone_mode=False)
        assert got[-1].changes == changes
    with pytest.raises(ConfigError, match=naming("--sample", "--n-best 2")):
        app(["a", "--sample", "--n-best", "2"], standalone_mode=False)


def test_a_flag_may_have_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    class Letters(BaseModel):
        letter: Annotated[Literal["a", "b"] | None, Flag("--letter", "Choose.")] = None
        other: Annotated[Literal["c", "d"], Flag("--other", "Choose.")] = "c"

    for name, field in Letters.model_fields.items():
        monkeypatch.setitem(SEARCH_FIELDS, name, field)
        monkeypatch.setitem(FLAGS, name, field.metadata[0])  # type: ignore[arg-type]
    got = list[DecodingOptions]()

    @decoding_options("letter", "other")
    def verb(decoding: DecodingOptions = NO_CHANGES) -> None:
        got.append(decoding)

    app = Typer()
    app.command()(verb)
    for words in ([], ["--letter", "b"], ["--other", "d"]):
        app(words, standalone_mode=False)
    assert [each.changes for each in got] == [{}, {"letter": "b"}, {"other": "d"}]
    with pytest.raises(BadParameter, match=naming("'c'", "'d'")):
        app(["--other", "a"], standalone_mode=False)
