"""The committed pages of docs/paper are what the code of today makes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import transduce.view
from transduce.paper import ARTEFACTS, Experiments, Request, write_report

COMMITTED = Path(__file__).parents[2] / "docs" / "paper"


@pytest.mark.parametrize("name", ["table2", "table3", "table4"])
def test_tables_follow_from_the_records(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    shutil.copytree(COMMITTED / "runs", tmp_path / "runs")
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu")
    for path in write_report(ARTEFACTS[name](experiments, Request()), tmp_path / "out"):
        if path.suffix != ".svg":  # drawings depend on the version of matplotlib
            assert path.read_text(encoding="utf-8") == (COMMITTED / path.name).read_text(encoding="utf-8")
        else:
            assert (COMMITTED / path.name).exists()
    assert not (tmp_path / "work").exists()  # nothing was trained


@pytest.mark.parametrize("name", ["attention_page.css", "attention_drawing.js", "attention_page.js"])
def test_the_attention_page_has_the_assets_of_today(name: str) -> None:
    asset = (Path(transduce.view.__file__).parent / name).read_text(encoding="utf-8")
    assert asset.strip() in (COMMITTED / "attention.html").read_text(encoding="utf-8")
