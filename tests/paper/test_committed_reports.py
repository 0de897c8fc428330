"""The committed tables of docs/paper are what the code makes from the committed records."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

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
