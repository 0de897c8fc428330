"""Table 4: the short form end to end, the paper's numbers, and that the recipes are what it runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from transduce.errors import ConfigError, DataError
from transduce.paper import ARTEFACTS, Laboratory, Request, RunRecord, write_report
from transduce.paper.table4 import PRINTED, parser_at_scale, printed_and_ours
from transduce.recipes import read_recipe

RECIPES = Path(__file__).parents[2] / "recipes"


def test_the_short_form(tmp_path: Path) -> None:
    laboratory = Laboratory(tmp_path / "runs", tmp_path / "work", scale="cpu")
    report = ARTEFACTS["table4"](laboratory, Request(is_short=True))
    measured, printed = report.table(), report.table("-printed")
    rows = [dict(zip(measured.columns, row, strict=True)) for row in measured.rows]
    assert len(rows) == 2  # dev and test
    for row in rows:
        assert (row["sentences"], row["skipped"], row["errors"]) == (12, 0, 0)
        assert 0 <= row["our F1"] <= 100
    assert printed.rows == PRINTED  # ours is of other sentences: none of it stands here
    text = write_report(report, tmp_path / "out")[0].read_text(encoding="utf-8")
    assert "| Transformer (4 layers) | semi-supervised | 92.7 |" in text


@pytest.mark.parametrize(
    ("name", "recipe"), [("gum", "parsing-gum"), ("free-trees", "parsing-free-trees"), ("wsj", "parsing-wsj")]
)
def test_the_recipes_are_what_it_runs(name: str, recipe: str) -> None:
    assert parser_at_scale(name, "gpu") == read_recipe(RECIPES / f"{recipe}.toml")
    shorter, whole = parser_at_scale(name, "cpu"), parser_at_scale(name, "paper")
    assert shorter.training.max_updates == whole.training.max_updates / 4


def test_only_what_is_of_section_23_stands_beside_the_papers(tmp_path: Path) -> None:
    laboratory = Laboratory(tmp_path / "runs", tmp_path / "work", scale="cpu")
    ARTEFACTS["table4"](laboratory, Request(is_short=True))
    (path,) = (tmp_path / "runs" / "cpu").glob("*.json")
    values = json.loads(path.read_text(encoding="utf-8"))
    assert values.pop("format") == 1
    record = RunRecord(**values)
    assert printed_and_ours([record]).rows == PRINTED
    assert record.test_scores is not None
    section_23 = replace(record, test_text="wsj test")
    assert printed_and_ours([section_23]).rows == PRINTED  # a dozen sentences are not the section
    section_23.test_scores["valid"] = 2416
    *theirs, ours = printed_and_ours([section_23]).rows
    assert tuple(theirs) == PRINTED
    assert ours == ("ours, 6 updates", "WSJ only, discriminative", section_23.test_scores["f1"])


def test_the_papers_own_runs_need_the_treebank(tmp_path: Path) -> None:
    laboratory = Laboratory(tmp_path / "runs", tmp_path / "work", scale="paper")
    with pytest.raises(ConfigError, match="table4 at --scale paper needs --treebank"):
        ARTEFACTS["table4"](laboratory, Request())
    with pytest.raises(DataError, match="the folder with the sections 00 to 24"):
        ARTEFACTS["table4"](laboratory, Request(treebank=tmp_path))
