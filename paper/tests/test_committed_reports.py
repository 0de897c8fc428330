"""The committed pages of docs/paper are what the code of today makes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import transduce.view
from transduce_paper import ARTEFACTS, Experiments, Request, write_report

COMMITTED = Path(__file__).parents[2] / "paper" / "reports"


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


@pytest.mark.parametrize("name", ["figure3", "figure4", "figure5"])
def test_attention_figures_follow_from_records_and_arrays(name: str, tmp_path: Path) -> None:
    arrays = list((COMMITTED / "runs" / "cpu").glob("attention-6.*.npy"))
    if not arrays:
        pytest.skip("the attention weights of the drawn sentences are not committed")
    of_paper = "governments" if name == "figure3" else "law"
    drawn = [path for path in arrays if re.search(rf"sentence-(woman|{of_paper})\.", path.name)]
    assert 0 < sum(path.stat().st_size for path in drawn) <= 1_000_000
    shutil.copytree(COMMITTED / "runs", tmp_path / "runs")
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu")
    for path in write_report(ARTEFACTS[name](experiments, Request()), tmp_path / "out"):
        if path.suffix != ".html":  # compressed, so it depends on the version of zlib
            assert path.read_text(encoding="utf-8") == (COMMITTED / path.name).read_text(encoding="utf-8")
    assert not (tmp_path / "work").exists()  # no model was needed


@pytest.mark.parametrize("name", ["attention_page.css", "attention_drawing.js", "attention_page.js"])
def test_the_attention_page_has_the_assets_of_today(name: str) -> None:
    asset = (Path(transduce.view.__file__).parent / name).read_text(encoding="utf-8")
    assert asset.strip() in (COMMITTED / "attention.html").read_text(encoding="utf-8")
