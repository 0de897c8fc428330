"""``transduce paper``: what it prints and writes, and what it refuses before any work."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from messages import says
from transduce.errors import DataError
from transduce_paper import ARTEFACTS, LARGER, Experiments, Report, Request, Scale, Stopped
from transduce_paper.cli import _with_recorded, paper
from transduce_paper.table3 import runs_of_table
from transduce_paper.table3.rows import runs_of_row

CommandLine = Callable[..., Any]
COMMITTED = Path(__file__).parents[1] / "reports"


def refused(outcome: Any) -> str:
    """The error of a command that was refused in one line."""
    assert (outcome.code, outcome.out) == (1, "")
    [line] = outcome.err.splitlines()
    assert line.startswith("error: ")
    assert "this is a bug" not in line
    return str(line)


def test_a_report_is_written_and_told(transduce: CommandLine, tmp_path: Path) -> None:
    told = json.loads(transduce("paper", "figure1", "--scale", "test", "--out", tmp_path, "--json").out)
    assert told["scale"] == "test"
    paths = [Path(path) for path in told["written"]["figure1"]]
    assert paths
    assert all(path.is_relative_to(tmp_path / "test") and path.exists() for path in paths)


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["table5"], ["'table5'"]),
        (["table1", "--scale", "big"], ["--scale", "test", "cpu", "hours", "gpu", "paper", "'big'"]),
        (["figure1", "--scale", "hours"], ["--scale hours", "table3", "'figure1'"]),
        (["all", "--scale", "paper"], ["--treebank"]),
        (["figure3", "--sentence", " "], ["--sentence"]),
        (["table3", "--row", "A-h2"], ["'A-h2'", "A-h32"]),
        (["table3", "--row", "base", "--row", "B-dk61"], ["'B-dk61'", "B-dk16"]),
        (["table2", "--row", "base"], ["--row", "table3", "'table2'", "'base'"]),
        (["all", "--row", "base"], ["--row", "table3", "'all'"]),
        (["table1", "--recorded"], ["--recorded", "table2, table3, table4", "'table1'"]),
        (["table3", "--recorded", "--row", "base"], ["--recorded", "--row"]),
        (["table2", "--scale", "hours", "--recorded"], ["hours", "table2", "first seeds", "--recorded"]),
        (["table4", "--jobs", "3"], ["--jobs", 3, "table2 and table3", "'table4'"]),
    ],
)
def test_what_cannot_be_made_is_refused_before_the_work(
    transduce: CommandLine, tmp_path: Path, arguments: list[str], facts: list[str]
) -> None:
    assert says(refused(transduce("paper", *arguments, "--out", tmp_path / "out")), *facts)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--out", "--work"])
def test_paths_that_nothing_can_be_at(transduce: CommandLine, tmp_path: Path, option: str) -> None:
    loop, file = tmp_path / "loop", tmp_path / "file"
    loop.symlink_to(loop)
    file.write_text("a\n")
    for path in (loop, loop / "x", file, file / "x", tmp_path / ("n" * 250), tmp_path / ("n" * 300), ""):
        told = refused(transduce("paper", "table1", option, path))
        assert path == "" or str(path) in told
    assert {path.name for path in tmp_path.iterdir()} == {"loop", "file"}
    assert file.read_text() == "a\n"


def test_names_have_to_be_utf8(transduce: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        folder.mkdir()
    except (OSError, UnicodeError):
        pytest.skip("no such names here")
    assert says(refused(transduce("paper", "table1", "--out", folder / "x")), r"caf\udce9/x", "UTF-8")
    assert not list(folder.iterdir())


def test_all_goes_on_after_what_cannot_be_made(
    transduce: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(experiments: object, request: object) -> Report:
        raise DataError("there is no text")

    def succeed(experiments: object, request: object) -> Report:
        return Report("Figure 1", ("a drawing",), name="figure1")

    def stop(experiments: object, request: object) -> Report:
        raise Stopped

    monkeypatch.setattr("transduce_paper.ARTEFACTS", {"table2": fail, "figure1": succeed})
    outcome = transduce("paper", "all", "--out", tmp_path)
    assert outcome.code == 1
    assert "table2: there is no text" in outcome.err
    assert (tmp_path / "figure1.md").exists()
    monkeypatch.setattr("transduce_paper.ARTEFACTS", {"table2": stop, "figure1": succeed})
    assert says(transduce("paper", "all", "--out", tmp_path).err, "table2")


def test_all_at_scale_hours_are_the_tables_of_larger_models(
    transduce: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command is the queue: it goes on with what has no record yet."""
    made: list[str] = []

    def make(name: str) -> Callable[[Experiments, Request], Report]:
        return lambda experiments, _: made.append(f"{experiments.scale}/{name}") or Report(name, (), name=name)

    monkeypatch.setattr("transduce_paper.ARTEFACTS", {name: make(name) for name in ("table1", *LARGER)})
    outcome = transduce("paper", "all", "--scale", "hours", "--out", tmp_path)
    assert outcome.code == 0, outcome.err
    assert made == ["hours/table2", "hours/table3", "hours/table4"]
    assert {path.name for path in (tmp_path / "hours").iterdir()} == {f"{name}.md" for name in LARGER}


def test_its_options_are_known() -> None:
    """They are frozen: a change affects users."""
    app = typer.Typer(add_completion=False)
    app.command()(paper)
    parameters = typer.main.get_command(app).params
    assert sorted(max(each.opts, key=len) for each in parameters if each.opts[0].startswith("--")) == [
        "--data", "--device", "--jobs", "--json", "--model", "--out", "--recorded", "--row", "--scale", "--sentence",
        "--treebank", "--work",
    ]  # fmt: skip


def test_claims_on_table_3_are_tested_by_the_largest_models_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page links the report of that scale, in the place of the small one."""
    monkeypatch.setitem(ARTEFACTS, "table3", lambda experiments, _: Report(experiments.scale, (), name="table3"))
    made = {name: Report(name, (), name=name) for name in ("table2", "table3", "table4")}
    assert _with_recorded(made, tmp_path, tmp_path) == made
    scales: tuple[Scale, ...] = ("gpu", "hours")
    for scale in scales:
        experiments = Experiments(tmp_path, tmp_path, scale=scale)
        (tmp_path / scale).mkdir()
        paths = [experiments.record_path(run) for run in runs_of_table(experiments)]
        for path in paths[1:]:
            path.write_text("{}")
        assert f"{scale}/table3" not in _with_recorded(made, tmp_path, tmp_path)  # a run is missing
        paths[0].write_text("{}")
        larger = _with_recorded(made, tmp_path, tmp_path)
        assert list(larger) == ["table2", f"{scale}/table3", "table4"]
        assert larger[f"{scale}/table3"].title == scale


def test_rows_that_are_recorded_test_their_claims_before_the_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the claims is tested by the smaller models."""

    def make(experiments: Experiments, request: Request) -> Report:
        return Report(" ".join(request.rows), (), name="table3-rows" if request.rows else "table3")

    monkeypatch.setitem(ARTEFACTS, "table3", make)
    made = {"table3": Report("small", (), name="table3")}
    experiments = Experiments(tmp_path, tmp_path, scale="hours")
    (tmp_path / "hours").mkdir()
    for name in ("base", "C-N2"):
        assert _with_recorded(made, tmp_path, tmp_path) == made
        for run in runs_of_row(experiments, name):
            experiments.record_path(run).write_text("{}")
    larger = _with_recorded(made, tmp_path, tmp_path)
    assert {name: report.title for name, report in larger.items()} == {
        "hours/table3-rows": "base C-N2", "table3": "small",
    }  # fmt: skip


def test_claims_of_recorded_reports_that_all_does_not_make(tmp_path: Path) -> None:
    made = {name: Report(name, (), name=name) for name in ("table1", "notes")}
    assert list(_with_recorded(made, COMMITTED / "runs", tmp_path / "work")) == ["table1", "future", "notes"]
    assert _with_recorded(made, tmp_path / "runs", tmp_path / "work") == made
    assert not (tmp_path / "work").exists()  # nothing is trained
