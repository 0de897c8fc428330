"""Configuration records are frozen and strict; recipes override a preset."""

from __future__ import annotations

import copy
import pickle
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from said import naming
from transduce.config import (
    AnyModelConfig,
    AnySearchConfig,
    BeamSearchConfig,
    ConvS2SConfig,
    DataConfig,
    GreedySearchConfig,
    ModelConfig,
    RunConfig,
    SearchConfig,
    TrainingConfig,
    TransformerConfig,
    config_from_mapping,
)
from transduce.config.record import ELSEWHERE
from transduce.errors import ConfigError
from transduce.model.cost import cost_of
from transduce.recipes import PRESETS, about_recipe, built_in_recipes, preset, read_recipe, with_settings


def test_defaults_are_the_paper_s() -> None:
    run = RunConfig()
    assert run == preset("base")
    training = run.training
    assert (training.adam_beta1, training.adam_beta2, training.adam_eps) == (0.9, 0.98, 1e-9)
    assert (training.warmup_steps, training.max_updates, training.max_tokens_per_batch) == (4000, 100_000, 25_000)
    assert (training.eps_ls, run.model.p_drop, run.model.norm) == (0.1, 0.1, "post")
    assert (run.search.beam_size, run.search.alpha, run.search.max_extra_tokens) == (4, 0.6, 50)
    big = preset("big")
    assert (big.model.p_drop, big.training.max_updates, big.training.average_last) == (0.3, 300_000, 20)


# Layers, d_model, d_ff, h, d_k, d_v, million weights without embeddings. Section 6.3: 4 layers, d_model 1024, all other
# parameters those of base; the authors' code (tensor2tensor): 6 layers, and the big model for the semi-supervised set.
PARSERS = {
    "parsing-wsj": (4, 1024, 2048, 8, 128, 128, 83.95),
    "parsing-wsj-semi": (4, 1024, 2048, 8, 128, 128, 83.95),
    "parsing-wsj-authors-code": (6, 1024, 2048, 8, 128, 128, 125.93),
    "parsing-wsj-semi-authors-code": (6, 1024, 4096, 16, 64, 64, 176.28),
}


@pytest.mark.parametrize("name", PARSERS)
def test_the_paper_s_parsers_have_its_numbers(name: str) -> None:
    run = read_recipe(Path(name))
    model = run.model.with_vocabulary(16_000, 200)
    assert isinstance(model, TransformerConfig)
    assert model.n_encoder_layers == model.n_decoder_layers
    million = round(cost_of(model).parameters_without_embeddings / 1e6, 2)
    sizes = (model.n_encoder_layers, model.d_model, model.d_ff, model.n_heads, model.d_k, model.d_v, million)
    assert sizes == PARSERS[name]
    assert (run.search.beam_size, run.search.alpha, run.search.max_extra_tokens) == (21, 0.3, 300)
    assert run.data.vocab_size == (32_000 if "semi" in name else 16_000)
    base = preset("base")
    unchanged = ("norm", "positions", "p_drop_relu", "n_experts")
    assert "code" in name or all(getattr(model, field) == getattr(base.model, field) for field in unchanged)
    assert (run.training.adam_beta2, run.training.eps_ls) == (0.98, 0.1)


def test_configurations_do_not_change() -> None:
    with pytest.raises(ValidationError):
        RunConfig().model.d_model = 3  # type: ignore[misc]


def test_every_recipe_in_the_folder_can_be_read() -> None:
    recipes = built_in_recipes()
    assert len(recipes) > 30
    assert recipes.keys().isdisjoint(PRESETS)
    for name, path in recipes.items():
        assert read_recipe(path) == read_recipe(Path(name)), name
        assert len(about_recipe(path)) > 20, name


def test_a_file_goes_before_the_recipe_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = Path("multi30k-en-de")
    name.mkdir()
    built_in = read_recipe(name)
    name.rmdir()
    name.write_text('preset = "tiny"\n')
    assert read_recipe(name) == preset("tiny") != built_in


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("recipes/multi30k-en-de.toml", "multi30k-en-de"),
        ("recipes/alignment/dpo.toml", "alignment/dpo"),
        ("multi30k-en-ed", "multi30k-en-de"),
        ("/no/where/lm-character.toml", "lm-characters"),
        ("zzz", "train --list"),
    ],
)
def test_an_unknown_recipe_is_told_with_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=naming(name, meant)):
        read_recipe(Path(name))


@pytest.mark.parametrize(
    ("setting", "name"),
    [("training.label_smoothing=0.1", "eps_ls"), ("model.dropout=0.2", "p_drop"), ("search.num_beams=4", "beam_size")],
)
def test_a_key_of_another_program_is_told_by_its_name_here(setting: str, name: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown key {setting.partition('=')[0]}; it is {name} here"):
        with_settings(preset("base"), [setting])


def test_names_of_other_programs_are_none_of_ours() -> None:
    kinds = (*ModelConfig.members.values(), TrainingConfig, BeamSearchConfig)
    fields = {name for kind in kinds for name in kind.model_fields}
    assert ELSEWHERE.keys() <= fields
    assert fields.isdisjoint(each for synonyms in ELSEWHERE.values() for each in synonyms)


@pytest.mark.parametrize("page", ["docs/train.md", "docs/data.md", "docs/parsing.md"])
def test_every_recipe_in_the_documentation_can_be_read(page: str, tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / page).read_text(encoding="utf-8")
    recipes = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert recipes
    for recipe in recipes:
        (tmp_path / "r.toml").write_text(recipe, encoding="utf-8")
        assert isinstance(read_recipe(tmp_path / "r.toml"), RunConfig)


def test_the_settings_in_the_documentation_fit_their_recipes() -> None:
    root = Path(__file__).parents[1]
    page = (root / "docs" / "data.md").read_text(encoding="utf-8")
    known = built_in_recipes()
    commands = [each for each in re.findall(r"transduce \w+ (\S+)(.*)", page) if each[0] in known]
    assert any("data.corpus={" in options for _, options in commands)
    for recipe, options in commands:
        words = shlex.split(options, comments=True)
        read_recipe(Path(recipe), [value for flag, value in pairwise(words) if flag == "--set"])


def test_the_settings_in_the_notebook_fit_the_recipe() -> None:
    root = Path(__file__).parents[1]
    page = (root / "notebook" / "translation.md").read_text(encoding="utf-8")
    spans = re.findall(r"`([^`|]+)`", re.sub(r"```.*?```", "", page, flags=re.DOTALL))
    lists = [span.split() for span in spans if re.fullmatch(r"([a-z]+\.\w+=\S+\s*)+", span)]
    assert any(len(words) > 5 for words in lists)
    for words in lists:
        assert len({word.split("=")[0] for word in words}) == len(words)
        read_recipe(Path("multi30k-en-de"), words)


def test_the_settings_of_the_switches_fit_the_recipe() -> None:
    root = Path(__file__).parents[1]
    script = (root / "benchmarks" / "switches.sh").read_text(encoding="utf-8")
    updates = re.sub(r"\$\(\(.*?\)\)", "7", script)
    variables = dict(re.findall(r'^(\w+)="(training\.[^"]*)"', updates, re.MULTILINE))
    rows = re.search(r"<<RUNS[^\n]*\n(.*?)\nRUNS\n", updates, re.DOTALL)
    assert rows is not None
    assert len(rows[1].splitlines()) > 20
    for row in rows[1].splitlines():
        _, *words = re.sub(r"\$(\w+)", lambda name: variables[name[1]], row).split()
        read_recipe(Path("multi30k-en-de"), words)


def test_a_recipe_overrides_single_fields(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text('preset = "tiny"\n[training]\nmax_updates = 7\n[model]\np_drop = 0\n')
    run = read_recipe(path, ["training.warmup_steps=9", 'data.direction="de-en"', "search.alpha = 1"])
    assert run.model == preset("tiny").model.model_copy(update={"p_drop": 0.0})
    assert (run.training.max_updates, run.training.warmup_steps) == (7, 9)
    assert (run.data.src_language, run.data.tgt_language, run.search.alpha) == ("de", "en", 1.0)


def test_whole_numbers_are_numbers() -> None:
    run = with_settings(RunConfig(), ["data.corpus={multi30k=2, grammar=1000}", "training.max_minutes=15"])
    assert (run.data.weights, run.training.max_minutes) == ({"multi30k": 2.0, "grammar": 1000.0}, 15.0)
    assert config_from_mapping(RunConfig, run.model_dump(), where="here") == run


def test_settings_that_only_fit_together_are_taken_together() -> None:
    run = with_settings(RunConfig(), ["data.shared_vocabulary=false", "model.embeddings=target"])
    assert run.model.embeddings == "target"


@pytest.mark.parametrize(
    ("setting", "facts"),
    [
        ("model.d_model=510", ["positions = 'words'", "d_model", 4, 510]),
        ("model.system=bytenet", ["model.positions", "'transformer'", "'convs2s'", "'bytenet'"]),
        ("model.system=convs2s", ["model.positions", "'sinusoidal'", "'learned'", "'words'"]),
    ],
)
def test_positions_of_words_need_halves_and_a_transformer(setting: str, facts: list[object]) -> None:
    with pytest.raises(ConfigError, match=naming(*facts)):
        with_settings(RunConfig(), ["model.positions=words", setting])


@pytest.mark.parametrize(
    ("setting", "facts"),
    [
        ("training.max_updates=0", ["training.max_updates", 1, 0]),
        ("training.max_updates=1.5", ["training.max_updates", 1.5]),
        ("training.max_updates=true", ["training.max_updates", True]),
        ("model.p_drop=1.0", ["model.p_drop", 1, "1.0"]),
        ("model.d_model=511", ["d_model", 511]),
        ("model.norm=sandwich", ["model.norm", "'post'", "'pre'", "'sandwich'"]),
        ("data.direction=english", ["data.direction", "en-de", "'english'"]),
        ("data.corpus=a b", ["data.corpus", "'a b'"]),
        ("data.corpus=5", ["data.corpus", "{multi30k = 1.0}", 5]),
        ("data.corpus={}", ["corpus"]),
        ("data.corpus={files=0}", ["data.corpus.files", 0, 0]),
        ("data.corpus={multi30k=1000.5}", ["data.corpus.multi30k", 1000, 1000.5]),
        ("data.corpus={multi30k=inf}", ["data.corpus.multi30k", "finite", "inf"]),
        ("data.corpus={multi30k=nan}", ["data.corpus.multi30k", "finite", "nan"]),
        ("data.corpus={multi30k='much'}", ["data.corpus.multi30k", "number", "'much'"]),
        ("data.corpus={'a b'=1}", ["data.corpus.a b"]),
        ("data.dev_tsv=", ["data.dev_tsv", 1, "''"]),
        ("training.max_minutes=inf", ["training.max_minutes", "finite", "inf"]),
        ("data.shared_vocabulary=false", ["three-way", "shared_vocabulary"]),
        ("data.train_src=a", ["train_src", "train_tgt"]),
        ("training.average_last=6", ["average_last", "keep_checkpoints", 6, 5]),
        ("search.n_best=9", ["n_best", "beam_size", 9, 4]),
        ("model.heads=4", ["model.heads", "n_heads"]),
        ("model.zzz=4", ["model.zzz", "n_encoder_layers"]),
        ("model=4", ["table.key=value", "model=4"]),
        ("model.system=rnn", ["--set", "model.system", "'transformer'", "'bytenet'", "'rnn'"]),
        ("model.kernel_width=5", ["kernel_width", "model.system", "'convs2s'", "'bytenet'", "'transformer'"]),
        ("search.kind=random", ["search.kind", "'beam'", "'greedy'", "'random'"]),
        ("data.task=Parsing", ["data.task", "'Parsing'"]),
        ("data.leafs=any", ["data.leafs", "leaves"]),
    ],
)
def test_bad_settings_are_one_clear_line(setting: str, facts: list[object]) -> None:
    with pytest.raises(ConfigError, match=naming(*facts)):
        with_settings(RunConfig(), [setting])


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        ('preset = "bass"', "unknown preset 'bass'; did you mean base?"),
        ('prest = "base"', "unknown key prest; did you mean preset?"),
        ("d_model = 8", "unknown key d_model; it is a key of the table [model]"),
        ("max_updates = 5\n[model]\nd_ff = 8", "unknown key max_updates; it is a key of the table [training]"),
        ("[modle]\nd_ff = 8", "unknown key modle; did you mean model?"),
        ("[[model]]\nd_ff = 8", "model: should be a table of keys, got [{'d_ff': 8}]"),
    ],
)
def test_bad_recipes_are_one_clear_line(recipe: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(recipe, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        read_recipe(path)
    assert str(error.value) == f"{path}: {told}"


def test_a_configuration_of_a_base_is_that_of_the_kind_it_names() -> None:
    assert ModelConfig() == TransformerConfig() == config_from_mapping(ModelConfig, {}, where="here")
    assert SearchConfig(beam_size=7) == BeamSearchConfig(beam_size=7)
    greedy = SearchConfig(kind="greedy", alpha=0.5)
    assert isinstance(greedy, GreedySearchConfig)
    assert isinstance(greedy, SearchConfig)
    assert (greedy.beam_size, greedy.n_best) == (1, 1)
    convolutions = config_from_mapping(ModelConfig, {"system": "convs2s", "kernel_width": 5}, where="here")
    assert convolutions == ConvS2SConfig(kernel_width=5) == ModelConfig(system="convs2s", kernel_width=5)
    run = RunConfig(model=convolutions, search=greedy)
    for again in (
        config_from_mapping(RunConfig, run.model_dump(), where="here"),
        RunConfig.model_validate_json(run.model_dump_json()),
        copy.deepcopy(run),
        pickle.loads(pickle.dumps(run)),
    ):
        assert again == run
        assert type(again.model) is ConvS2SConfig
    with pytest.raises(ConfigError, match=naming("there", "system", "'transformer'", "'bytenet'", "'rnn'")):
        config_from_mapping(ModelConfig, {"system": "rnn"}, where="there")
    with pytest.raises(ConfigError, match=naming("there", "d_ff", "system = 'transformer'", "system = 'convs2s'")):
        config_from_mapping(ModelConfig, {"system": "convs2s", "d_ff": 8}, where="there")


@pytest.mark.parametrize(("base", "union"), [(ModelConfig, AnyModelConfig), (SearchConfig, AnySearchConfig)])
def test_every_kind_is_in_the_union(base: Any, union: Any) -> None:
    kinds = get_args(get_args(union)[0])
    assert {kind.model_fields[base.tag].default: kind for kind in kinds} == base.members
    assert base.default_tag in base.members


def test_another_system_keeps_of_a_preset_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text('preset = "tiny"\n[model]\nsystem = "convs2s"\nkernel_width = 5\n')
    tiny = preset("tiny").model
    expected = ConvS2SConfig(
        n_encoder_layers=tiny.n_encoder_layers, n_decoder_layers=tiny.n_decoder_layers, d_model=tiny.d_model,
        p_drop=tiny.p_drop, kernel_width=5,
    )  # fmt: skip
    assert read_recipe(path).model == expected
    bytenet = read_recipe(path, ["model.system=bytenet"]).model
    assert bytenet.model_dump() == {
        name: value for name, value in expected.model_dump().items() if "positions" not in name
    } | {"system": "bytenet"}
    assert read_recipe(path, ["search.kind=greedy", "search.alpha=1"]).search == GreedySearchConfig(alpha=1.0)


def test_a_key_of_before_is_read_and_told(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    rest = '[model]\nembeddings = "separate"\n[data]\nshared_vocabulary = false\n'
    path.write_text(rest + 'target = "trees"\n')
    told = list[str]()
    assert read_recipe(path, log=told.append).data.task == "parsing"
    (line,) = told
    assert re.search(naming("warning: ", path, "data.target", "data.task", "'parsing'"), line)
    with pytest.warns(FutureWarning, match=naming(path, "data.target", "data.task", "'parsing'")):
        assert read_recipe(path).data.task == "parsing"
    path.write_text(rest + 'task = "parsing"\n')
    told.clear()
    assert read_recipe(path, ["data.target=text"], log=told.append).data.task == "translation"
    (line,) = told
    assert re.search(naming("warning: ", "--set", "data.target", "data.task", "'translation'"), line)
    with pytest.raises(ConfigError, match=naming("data.target")):
        with_settings(RunConfig(), ["data.target=text", "data.task=translation"])
    with pytest.raises(ConfigError, match=naming("data.task", 5)):
        with_settings(RunConfig(), ["data.target=5"], log=told.append)
    with pytest.raises(ConfigError, match=naming("data.task", "2026")):
        with_settings(RunConfig(), ["data.target=2026-01-01"], log=told.append)


@pytest.mark.parametrize("system", ["recurrent", "bytenet"])
def test_half_of_a_width_is_a_width(system: str) -> None:
    with pytest.raises(ConfigError, match=naming("--set", "model.d_model", "even", 511)):
        with_settings(RunConfig(), [f"model.system={system}", "model.d_model=511"])


def test_both_ways_needs_one_vocabulary() -> None:
    separate = ["model.embeddings=target", "data.shared_vocabulary=false"]
    with pytest.raises(ConfigError, match=naming("bidirectional_epochs", "shared_vocabulary")):
        with_settings(RunConfig(), [*separate, "training.bidirectional_epochs=1"])


@pytest.mark.parametrize("setting", ["data.bpe_dropout=0.1", "data.corpus={multi30k=0.5}"])
def test_both_ways_needs_epochs_that_read_all_rows_once(setting: str) -> None:
    with pytest.raises(ConfigError, match=naming("bidirectional_epochs", "bpe_dropout")):
        with_settings(RunConfig(), ["training.bidirectional_epochs=1", setting])


def test_files_need_the_corpus_files() -> None:
    with pytest.raises(
        ConfigError, match=naming("here", re.compile("train_"), "corpus = 'files'", "corpus = 'grammar'")
    ):
        config_from_mapping(DataConfig, {"train_tsv": "a"}, where="here")
    values = {"corpus": "files", "train_tsv": "a", "train_src": "b", "train_tgt": "c"}
    with pytest.raises(ConfigError, match=naming("here", "train_tsv", "train_src")):
        config_from_mapping(DataConfig, values, where="here")


def test_records_survive_json() -> None:
    for name in PRESETS:
        run = preset(name)
        assert config_from_mapping(RunConfig, run.model_dump(), where=name) == run
    assert config_from_mapping(SearchConfig, {"alpha": 1}, where="x").alpha == 1.0


def test_one_vocabulary_for_three_way_embeddings() -> None:
    assert ModelConfig().with_vocabulary(100, 100).src_vocab_size == 100
    with pytest.raises(ConfigError, match=naming("three-way", 100, 101)):
        ModelConfig().with_vocabulary(100, 101)
