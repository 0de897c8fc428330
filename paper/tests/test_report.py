"""Reports: tables, Markdown, CSV and drawings."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from messages import naming
from transduce_paper import Report, Table, write_report
from transduce_paper.report import Claim, Section


def test_report_files(tmp_path: Path) -> None:
    table = Table("-times", ("layer", "paper", "ms"), (("a | b", None, 1.2345), ("c", 3, 2)), "Times:", {"ms": ".2f"})
    report = Report(
        "Table 9",
        ("Some words.", table),
        name="table9",
        drawings={"table9": lambda path: path.write_text("<svg/>", encoding="utf-8") and None},
        pages={"table9.html": "<p>page</p>"},
    )
    paths = write_report(report, tmp_path / "deep" / "out")
    assert [path.name for path in paths] == ["table9.md", "table9-times.csv", "table9.svg", "table9.html"]
    assert paths[0].read_text(encoding="utf-8") == (
        "# Table 9\n\nSome words.\n\nTimes:\n\n| layer | paper | ms |\n| --- | --- | --- |\n"
        "| a \u2223 b |  | 1.23 |\n| c | 3 | 2.00 |\n\n![table9](table9.svg)\n"
    )
    with paths[1].open(encoding="utf-8", newline="") as lines:
        assert list(csv.reader(lines)) == [["layer", "paper", "ms"], ["a | b", "", "1.2345"], ["c", "3", "2"]]


def test_a_report_has_the_drawings_and_claims_of_its_sections(tmp_path: Path) -> None:
    def draw(path: Path) -> None:
        path.write_text("<svg/>", encoding="utf-8")

    claims = [Claim(sentence, "section 4", "agrees", "It is so.") for sentence in ("first", "second", "third")]
    inner = Section("Inner", ("Deep.", Table("-deep", ("n",), ((1,),))), drawings={"inner": draw}, claims=(claims[2],))
    outer = Section("Outer", (inner,), "Found.", question="why?", summary="found", claims=(claims[1],))
    report = Report("Whole", (outer, "End."), "All found.", drawings={"whole": draw}, claims=(claims[0],), name="r")
    assert [path.name for path in write_report(report, tmp_path)] == ["r.md", "r-deep.csv", "whole.svg", "inner.svg"]
    assert [claim for part in report.parts() for claim in part.claims] == claims
    assert (tmp_path / "r.md").read_text(encoding="utf-8") == (
        "# Whole\n\n**All found.**\n\n## Outer\n\n**Found.**\n\nQuestion: why?\n\n### Inner\n\nDeep.\n\n| n |\n| --- |"
        "\n| 1 |\n\nEnd.\n\n![whole](whole.svg)\n\n![inner](inner.svg)\n"
    )


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match=naming(1, 2, "'only'")):
        Table("", ("a", "b"), (("only",),))


def test_a_table_and_its_columns_are_found_by_name() -> None:
    main, other = Table("", ("n", "ms"), ((8, 1.5), (16, None))), Table("-other", ("x",), ())
    report = Report("Table 9", ("Some words.", Section("A part", (main, other))), name="table9")
    assert report.table() is main
    assert report.table("-other") is other
    assert main.column("ms") == [1.5, None]
    with pytest.raises(ValueError, match="not in"):
        main.column("s")
    with pytest.raises(ValueError, match="unpack"):
        report.table("-third")
