"""Variants of the parser of Table 4: the short form end to end, its records, differences and raw text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from messages import says
from transduce.config import RunConfig
from transduce.corpora import read_trees
from transduce.inference import Parser
from transduce.linearisation import PUNCTUATION_TAGS
from transduce.model import cost_of
from transduce.recipes import RECIPES, read_recipe
from transduce_paper import ARTEFACTS, Experiments, Request, Stopped
from transduce_paper.report import Section
from transduce_paper.table4.variants import (
    FEW,
    VARIANTS,
    make_parsing_variants,
    raw_sentences,
    variant_experiment,
    variant_experiments,
)

pytest.importorskip("nltk")


@pytest.fixture(scope="module")
def folder(table4_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The records and the work folder of the short form."""
    folder = tmp_path_factory.mktemp("variants")
    shutil.copytree(table4_folder, folder, dirs_exist_ok=True)
    return folder


def short_form(folder: Path, work: str = "work") -> Section:
    (section,) = make_parsing_variants(Experiments(folder / "runs", folder / work, scale="test"))
    return section


def record_path(folder: Path, name: str) -> Path:
    return folder / "runs" / "test" / f"parsing-{name}.json"


def test_each_variant_is_trained_from_each_seed(folder: Path) -> None:
    records = (folder / "runs" / "test").glob("*seed?.json")
    configs = {path.stem: json.loads(path.read_text())["config"] for path in records}
    assert set(configs) == {f"parsing-{variant}-seed{seed}" for variant in VARIANTS for seed in (1, 2)}
    for name, config in configs.items():
        assert config["training"]["seed"] == int(name[-1])
        assert config["model"]["system"] == ("recurrent" if "recurrent" in name else "transformer")
        assert config["model"].get("p_drop_attention", 0.0) == (0.2 if "attention-dropout" in name else 0.0)
        semi = "semi-supervised" in name
        assert config["data"]["corpus"] == ({"grammar": 1.0, "files": 0.5} if semi else "grammar")
        assert config["training"]["max_updates"] == 6  # the same for all
    names = ["supervised", "attention dropout", "semi-supervised", "recurrent"]
    assert short_form(folder).table("-variants").column("parser") == names


def test_larger_parsers_have_four_seeds_each(tmp_path: Path) -> None:
    runs = {
        scale: variant_experiments(Experiments(tmp_path, tmp_path, scale=scale)) for scale in ("cpu", "hours", "gpu")
    }
    assert {scale: [len(of) for of in of_scale.values()] for scale, of_scale in runs.items()} == {
        "cpu": [2, 2, 2], "hours": [4, 4, 4, 4], "gpu": [0, 0, 0, 0],
    }  # fmt: skip


def test_table_4_has_the_supervised_parser_of_seed_1(table4_folder: Path) -> None:
    experiments = Experiments(table4_folder / "runs", table4_folder / "work", scale="test")
    report = ARTEFACTS["table4"](experiments, Request())
    f1 = report.table("-variants")
    first = [f1.column(f"{split} F1, seed 1")[0] for split in ("dev", "test")]
    assert report.table().column("our F1") == first


def test_parsed_sentences_are_the_raw_ones_with_endings_as_tags(folder: Path) -> None:
    for seed in (1, 2):
        trees = list(read_trees([folder / "work" / "test" / f"parsing-supervised-seed{seed}.ptb"]))
        assert [" ".join(tree.words()) for tree in trees] == list(raw_sentences(FEW, None))
        for leaf in (leaf for tree in trees for leaf in tree.leaves() if leaf.label not in PUNCTUATION_TAGS):
            assert leaf.label == f"XX~{(leaf.word or '')[-2:].lower()}"


def test_records_name_no_file_of_this_machine_and_are_read_on_another(folder: Path) -> None:
    """The trees of the other work folder do not exist; the records are enough."""
    for seed in (1, 2):
        data = json.loads(record_path(folder, f"semi-supervised-seed{seed}").read_text())["config"]["data"]
        assert [data[f"{split}_trees"] for split in ("train", "dev", "test")] == [None] * 3
    elsewhere, again = short_form(folder, work="elsewhere"), short_form(folder)
    assert elsewhere.table("-variants") == again.table("-variants")
    assert not (folder / "elsewhere" / "test").exists()  # nothing was trained or parsed


def test_parsing_stops_when_the_user_interrupts(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    record_path(tmp_path, "semi-supervised-seed2").unlink()
    parsed = tmp_path / "work" / "test" / "parsing-supervised-seed2.ptb"
    expected = parsed.read_text()
    parsed.unlink()
    log: list[str] = []
    interrupted = Experiments(
        tmp_path / "runs",
        tmp_path / "work",
        scale="test",
        should_stop=lambda: any(says(line, "parsing", FEW.n_sentences) for line in log),
        log=log.append,
    )
    with pytest.raises(Stopped):
        make_parsing_variants(interrupted)
    assert not parsed.exists()
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="test")
    make_parsing_variants(experiments)  # a new parser after the same sentences
    assert parsed.read_text() == expected


def test_differences_and_verdicts_follow_from_the_scores(folder: Path, tmp_path: Path) -> None:
    # Pairs of seeds 2 apart in each group: the standard deviation of one value is sqrt(2), of a difference sqrt(2).
    scores = {"supervised": (60, 62), "attention-dropout": (69, 71), "semi-supervised": (62, 64), "recurrent": (53, 55)}
    (tmp_path / "runs" / "test").mkdir(parents=True)
    for variant, of_seeds in scores.items():
        for seed, f1 in enumerate(of_seeds, start=1):
            record = json.loads(record_path(folder, f"{variant}-seed{seed}").read_text())
            record["dev_scores"]["f1"], record["test_scores"]["f1"] = f1 + 10.0, float(f1)
            record["last_fall"] = 0.0
            record_path(tmp_path, f"{variant}-seed{seed}").write_text(json.dumps(record))
    variants = short_form(tmp_path)
    table = variants.table("-variants")
    assert table.column("dev F1, seed 1") == [70, 79, 72, 63]
    assert table.column("test F1, seed 2") == [62, 71, 64, 55]
    assert table.column("test F1, difference") == [None, 9, 2, -7]
    assert table.column("±, dev")[1:] == pytest.approx([2.776 * 2**0.5] * 3, abs=1e-3)
    assert [claim.verdict for claim in variants.claims] == ["agrees", "cannot tell", "agrees"]
    for claim, gain in zip(variants.claims, ("+9.00 ± 3.93", "+2.00 ± 3.93", "+7.00 ± 3.93"), strict=True):
        assert gain in claim.found
    assert {claim.verdict for claim in short_form(folder).claims} == {"not trained to the end"}
    # One that is still learning leaves its claim open if it is the worse, and not the claims on the others.
    for name in ("recurrent-seed2", "attention-dropout-seed1"):
        path = record_path(tmp_path, name)
        path.write_text(json.dumps(json.loads(path.read_text()) | {"last_fall": 0.01}))
    verdicts = [claim.verdict for claim in short_form(tmp_path).claims]
    assert verdicts == ["agrees", "cannot tell", "not trained to the end"]


def test_variants_differ_from_the_recipe_in_nothing_else(tmp_path: Path) -> None:
    """They are validated more often, so that the fall of perplexity over the last tenth of the updates is known."""
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="hours")
    recipe = read_recipe(RECIPES / "parsing-gum.toml")
    changes = {
        variant: {
            name: value
            for name, value in flat(variant_experiment(experiments, variant, 2).config).items()
            if value != flat(recipe).get(name)
        }
        for variant in VARIANTS
    }
    tenth = recipe.training.max_updates // 10
    of_all = {"training.seed": 2, "training.validate_every_updates": tenth, "training.validation_bleu": False}
    lstms = {
        "system": "recurrent",
        "cell": "lstm",
        "attention": "additive",
        "n_encoder_layers": 6,
        "n_decoder_layers": 6,
    }
    assert changes == {
        "supervised": of_all,
        "attention-dropout": {**of_all, "model.p_drop_attention": 0.2},
        "semi-supervised": {
            **of_all,
            "data.corpus": {"gum": 1.0, "files": 0.5},
            "data.train_trees": str(tmp_path / "work" / "hours" / "parsing-supervised-seed2.ptb"),
        },
        "recurrent": of_all | {f"model.{name}": value for name, value in lstms.items()},
    }


def test_the_recurrent_parser_costs_about_as_much_as_the_transformer(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="hours")
    transformer, lstms = (variant_experiment(experiments, name, 1).config.model for name in ("supervised", "recurrent"))
    costs = [cost_of(model.with_vocabulary(4000, 615)).flops_per_token for model in (transformer, lstms)]  # GUM's
    assert costs[1] == pytest.approx(costs[0], rel=0.1)


def test_the_recurrent_parser_gives_every_word_a_place_in_a_tree(folder: Path) -> None:
    experiments = Experiments(folder / "runs", folder / "work", scale="test")
    parser = Parser.load(experiments.model_folder(variant_experiment(experiments, "recurrent", 1)))
    sentences = list(raw_sentences(FEW, None))
    trees = parser.parse(sentences)
    assert [" ".join(tree.words()) for tree in trees if tree] == sentences


def flat(config: RunConfig) -> dict[str, object]:
    return {
        f"{table}.{name}": value for table, of_table in config.model_dump().items() for name, value in of_table.items()
    }


def test_only_cpu_scale_has_variants(tmp_path: Path) -> None:
    for scale in ("gpu", "paper"):
        experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale=scale)
        assert make_parsing_variants(experiments) == []


def test_raw_sentences_are_different_and_of_moderate_length() -> None:
    sentences = list(raw_sentences(FEW, None))
    assert len(sentences) == len(set(sentences)) == FEW.n_sentences
    assert all(3 <= len(sentence.split()) <= 40 for sentence in sentences)
