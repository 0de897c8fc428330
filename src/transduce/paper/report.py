"""What a reproduction gives: tables and pictures, with the paper's numbers beside ours, as Markdown, CSV and SVG."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transduce.files import write_text

__all__ = ["Cell", "Report", "Table", "write_report"]

Cell = str | int | float | None  # None: not printed by the paper, or not measured


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns. ``formats`` say how numbers of a column are shown in Markdown; CSV has them whole."""

    name: str  # of its CSV file, after that of the report: "" or "-something"
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    formats: Mapping[str, str] = field(default_factory=dict)  # column -> as in format(value, ".2f")

    def __post_init__(self) -> None:
        """Raises ValueError if a row has not one cell for each column."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells in a table of {len(self.columns)} columns: {row}")

    def column(self, name: str) -> list[Any]:
        """The cells under a name, from the top. Raises ValueError if no column has it."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def as_markdown(self) -> str:
        """A pipe table with its caption above.

        >>> print(Table("", ("n", "ms"), ((8, 1.234), (16, None)), formats={"ms": ".1f"}).as_markdown())
        | n | ms |
        | --- | --- |
        | 8 | 1.2 |
        | 16 |  |
        """
        lines = [self.caption, ""] if self.caption else []
        lines += [_row(self.columns), _row(["---"] * len(self.columns))]
        lines += [_row([self._shown(*pair) for pair in zip(self.columns, row, strict=True)]) for row in self.rows]
        return "\n".join(lines)

    def as_csv(self) -> str:
        """Comma-separated, numbers in full; an empty field is a cell that has none."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(["" if cell is None else cell for cell in row] for row in self.rows)
        return out.getvalue()

    def _shown(self, column: str, cell: Cell) -> str:
        if cell is None:
            return ""
        return cell if isinstance(cell, str) else format(cell, self.formats.get(column, ""))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(0x2223)) for cell in cells)} |"


Draw = Callable[[Path], None]  # writes one SVG file


@dataclass(frozen=True, slots=True)
class Report:
    """One table or figure of the paper, made again."""

    name: str  # table1, figure2, notes, ...
    title: str
    sections: tuple[str | Table, ...]  # Markdown text and tables, in the order of reading
    drawings: Mapping[str, Draw] = field(default_factory=dict)  # name of the file without .svg -> what draws it
    pages: Mapping[str, str] = field(default_factory=dict)  # other files: name -> content

    def table(self, name: str = "") -> Table:
        """The table of that name; the main one has none. Raises ValueError if it is not there exactly once."""
        (table,) = (section for section in self.sections if isinstance(section, Table) and section.name == name)
        return table


def write_report(report: Report, folder: Path) -> list[Path]:
    """Write ``NAME.md``, its CSV files and drawings; returns their paths, the Markdown first."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = [section for section in report.sections if isinstance(section, Table)]
    body = [section.as_markdown() if isinstance(section, Table) else section for section in report.sections]
    body += [f"![{name}]({name}.svg)" for name in report.drawings]
    written = [folder / f"{report.name}.md"]
    for table in tables:
        path = folder / f"{report.name}{table.name}.csv"
        write_text(path, table.as_csv())
        written.append(path)
    for name, draw in report.drawings.items():
        draw(folder / f"{name}.svg")
        written.append(folder / f"{name}.svg")
    for name, content in report.pages.items():
        write_text(folder / name, content)
        written.append(folder / name)
    write_text(written[0], "\n\n".join([f"# {report.title}", *body]) + "\n")
    return written
