"""Attention dropout and semi-supervised parsing: the short form end to end, its records, differences and raw text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from messages import says
from transduce.config import RunConfig
from transduce.corpora import read_trees
from transduce.linearisation import PUNCTUATION_TAGS
from transduce_paper import Experiments, Stopped
from transduce_paper.parsers import parser_at_scale
from transduce_paper.parsing_variants import FEW, VARIANTS, make_parsing_variants, raw_sentences, variant_experiment
from transduce_paper.report import Section

pytest.importorskip("nltk")


@pytest.fixture(scope="module")
def folder(table4_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The records and the work folder of the short form."""
    folder = tmp_path_factory.mktemp("variants")
    shutil.copytree(table4_folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("table4-*"))
    return folder


def short_form(folder: Path, work: str = "work") -> Section:
    (section,) = make_parsing_variants(Experiments(folder / "runs", folder / work, scale="test"))
    return section


def record_path(folder: Path, name: str) -> Path:
    return folder / "runs" / "test" / f"parsing-{name}.json"


def test_each_variant_is_trained_from_each_seed(folder: Path) -> None:
    configs = {path.stem: json.loads(path.read_text())["config"] for path in (folder / "runs" / "test").iterdir()}
    variants = ("supervised", "attention-dropout", "semi-supervised")
    assert set(configs) == {f"parsing-{variant}-seed{seed}" for variant in variants for seed in (1, 2)}
    for name, config in configs.items():
        assert config["training"]["seed"] == int(name[-1])
        assert config["model"]["p_drop_attention"] == (0.2 if "attention-dropout" in name else 0.0)
        semi = "semi-supervised" in name
        assert config["data"]["corpus"] == ({"grammar": 1.0, "files": 0.5} if semi else "grammar")
        assert config["training"]["max_updates"] == 6  # the same for all
    assert short_form(folder).table("-variants").column("parser") == [
        "supervised",
        "attention dropout",
        "semi-supervised",
    ]


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
    scores = {"supervised": (60, 62), "attention-dropout": (69, 71), "semi-supervised": (62, 64)}
    (tmp_path / "runs" / "test").mkdir(parents=True)
    for variant, of_seeds in scores.items():
        for seed, f1 in enumerate(of_seeds, start=1):
            record = json.loads(record_path(folder, f"{variant}-seed{seed}").read_text())
            record["dev_scores"]["f1"], record["test_scores"]["f1"] = f1 + 10.0, float(f1)
            record["last_fall"] = 0.0
            record_path(tmp_path, f"{variant}-seed{seed}").write_text(json.dumps(record))
    variants = short_form(tmp_path)
    table = variants.table("-variants")
    assert table.column("dev F1, seed 1") == [70, 79, 72]
    assert table.column("test F1, seed 2") == [62, 71, 64]
    assert table.column("test F1, difference") == [None, 9, 2]
    assert table.column("±, dev")[1:] == pytest.approx([3.182 * 2**0.5] * 2, abs=1e-3)
    assert [claim.verdict for claim in variants.claims] == ["agrees", "cannot tell"]
    assert "+9.00 ± 4.50" in variants.claims[0].found
    assert "+2.00 ± 4.50" in variants.claims[1].found
    assert {claim.verdict for claim in short_form(folder).claims} == {"not trained to the end"}


def test_variants_differ_from_the_parser_of_table_4_in_nothing_else(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu")
    gum = flat(parser_at_scale("gum", "cpu"))
    changes = {
        variant: {
            name: value
            for name, value in flat(variant_experiment(experiments, variant, 2).config).items()
            if value != gum[name]
        }
        for variant in VARIANTS
    }
    assert changes == {
        "supervised": {"training.seed": 2},
        "attention-dropout": {"training.seed": 2, "model.p_drop_attention": 0.2},
        "semi-supervised": {
            "training.seed": 2,
            "data.corpus": {"gum": 1.0, "files": 0.5},
            "data.train_trees": str(tmp_path / "work" / "cpu" / "parsing-supervised-seed2.ptb"),
        },
    }


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
