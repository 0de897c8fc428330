"""Table 4: the short form end to end, the paper's numbers, and that it runs the recipes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from messages import naming
from transduce.errors import ConfigError, DataError
from transduce.recipes import RECIPES, read_recipe
from transduce_paper import ARTEFACTS, Experiments, Request, RunRecord, write_report
from transduce_paper.printed import PRINTED
from transduce_paper.table4 import printed_and_ours
from transduce_paper.table4.parsers import parser_at_scale


def test_short_report(table4_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(table4_folder, tmp_path, dirs_exist_ok=True)
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="test")
    report = ARTEFACTS["table4"](experiments, Request())
    measured, printed = report.table(), report.table("-printed")
    rows = [dict(zip(measured.columns, row, strict=True)) for row in measured.rows]
    assert len(rows) == 2  # dev and test
    for row in rows:
        assert (row["sentences"], row["skipped"], row["errors"]) == (12, 0, 0)
    assert printed.rows == PRINTED.table4  # ours was scored on other sentences, so it is not listed
    text = write_report(report, tmp_path / "out")[0].read_text(encoding="utf-8")
    assert "| Transformer (4 layers) | semi-supervised | 92.7 |" in text
    # After six updates all scores are 0; a record with distinct scores checks the columns.
    path = tmp_path / "runs" / "test" / "parsing-supervised-seed1.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    columns = ("recall", "precision", "our F1", "complete match", "our F1, at most 40 words")
    for row, split in zip(rows, ("dev_scores", "test_scores"), strict=True):
        of_split = record[split]
        expected = [of_split[key] for key in ("recall", "precision", "f1", "complete_match")]
        assert [row[column] for column in columns] == [*expected, of_split["length_40"]["f1"]]
    record["dev_scores"] |= {"recall": 60.0, "precision": 40.0, "f1": 48.0, "complete_match": 25.0, "errors": 1}
    record["test_scores"] |= {"recall": 20.0, "precision": 80.0, "f1": 32.0, "complete_match": 0.0, "skipped": 2}
    record["dev_scores"]["length_40"]["f1"], record["test_scores"]["length_40"]["f1"] = 51.0, 33.0
    path.write_text(json.dumps(record), encoding="utf-8")
    again = ARTEFACTS["table4"](experiments, Request()).table()
    assert [again.column(column) for column in columns] == [[60, 20], [40, 80], [48, 32], [25, 0], [51, 33]]
    assert (again.column("errors"), again.column("skipped")) == ([1, 0], [0, 2])


@pytest.mark.parametrize(
    ("name", "recipe"), [("gum", "parsing-gum"), ("free-trees", "parsing-free-trees"), ("wsj", "parsing-wsj")]
)
def test_parsers_match_the_recipes(name: str, recipe: str) -> None:
    assert parser_at_scale(name, "gpu") == read_recipe(RECIPES / f"{recipe}.toml")
    shorter, whole = parser_at_scale(name, "cpu"), parser_at_scale(name, "paper")
    assert shorter.training.max_updates == whole.training.max_updates / 4


def test_only_scores_on_section_23_join_the_printed_rows(table4_folder: Path) -> None:
    path = table4_folder / "runs" / "test" / "parsing-supervised-seed1.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    assert values.pop("format") == 1
    record = RunRecord(**values)
    assert printed_and_ours([record]).rows == PRINTED.table4
    assert record.test_scores is not None
    section_23 = replace(record, test_text="wsj test")
    assert printed_and_ours([section_23]).rows == PRINTED.table4  # 12 sentences are not all of section 23
    section_23.test_scores["valid"] = 2416
    *theirs, ours = printed_and_ours([section_23]).rows
    assert tuple(theirs) == PRINTED.table4
    assert ours == ("ours, 6 updates", "WSJ only, discriminative", section_23.test_scores["f1"])


def test_paper_scale_needs_the_treebank(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="paper")
    with pytest.raises(ConfigError, match=naming("table4", "--scale paper", "--treebank")):
        ARTEFACTS["table4"](experiments, Request())
    with pytest.raises(DataError, match=naming(tmp_path, "00", "24")):
        ARTEFACTS["table4"](experiments, Request(treebank=tmp_path))
