"""Reports: tables and drawings with the paper's numbers beside ours, written as Markdown, CSV and SVG."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from transduce.files import write_text

__all__ = [
    "Cell", "Claim", "Draw", "Kind", "Report", "Section", "Table", "Verdict", "agreement", "how_to_reproduce",
    "picture", "sentence", "write_report",
]  # fmt: skip

Cell = str | int | float | None  # None: not printed by the paper, or not measured


@dataclass(frozen=True, slots=True)
class Table:
    """A table of named columns.

    ``formats`` are the number formats of its columns in Markdown; CSV has full precision. Raises ValueError if a row
    does not have one cell per column.
    """

    name: str  # suffix of its CSV file after the name of the report: "" or "-something"
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    formats: Mapping[str, str] = field(default_factory=dict)  # column -> as in format(value, ".2f")

    def __post_init__(self) -> None:
        """Check the number of cells of each row."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells in a table of {len(self.columns)} columns: {row}")

    def column(self, name: str) -> list[Any]:
        """Return the cells of a column. Raises ValueError if there is no such column."""
        index = self.columns.index(name)
        return [row[index] for row in self.rows]

    def as_markdown(self) -> str:
        """Return a Markdown table with its caption above.

        >>> print(Table("", ("n", "ms"), ((8, 1.234), (16, None)), formats={"ms": ".1f"}).as_markdown())
        | n | ms |
        | --- | --- |
        | 8 | 1.2 |
        | 16 |  |
        """
        lines = [self.caption, ""] if self.caption else []
        lines += [_row(self.columns), _row(["---"] * len(self.columns))]
        lines += [_row([self._formatted(*pair) for pair in zip(self.columns, row, strict=True)]) for row in self.rows]
        return "\n".join(lines)

    def as_csv(self) -> str:
        """Return the table as comma-separated values in full precision; None is an empty field."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(["" if cell is None else cell for cell in row] for row in self.rows)
        return out.getvalue()

    def _formatted(self, column: str, cell: Cell) -> str:
        if cell is None:
            return ""
        return cell if isinstance(cell, str) else format(cell, self.formats.get(column, ""))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(0x2223)) for cell in cells)} |"


Draw = Callable[[Path], None]  # writes one SVG file

Verdict = Literal["agrees", "does not", "cannot tell", "not trained to the end"]
# measured: something could have come out otherwise; arithmetic: on numbers that the paper prints; algebra: a formula;
# by construction: the model, or a trainer of tokenizers, is built so, and does what it is built for.
Kind = Literal["measured", "arithmetic", "algebra", "by construction"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, or of the lecture notes, and what came out when it was tested."""

    sentence: str
    where: str  # "section 4", "section 6.2 (B)", "notes"
    verdict: Verdict
    found: str  # the numbers behind the verdict, in one sentence
    kind: Kind = "measured"
    is_quoted: bool = True  # the source's own words


def agreement(is_so: bool | None, *, is_trained: bool = True) -> Verdict:
    """Return the verdict on a claim that was found true or false; None: the test does not decide.

    Models that are not trained to the end (``is_trained_to_the_end``) decide nothing.

    >>> agreement(True), agreement(None), agreement(True, is_trained=False)
    ('agrees', 'cannot tell', 'not trained to the end')
    """
    if not is_trained:
        return "not trained to the end"
    return "cannot tell" if is_so is None else "agrees" if is_so else "does not"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report: a heading, what was found, then text, tables and smaller parts in reading order."""

    title: str
    contents: tuple[str | Table | Section, ...]  # text is Markdown
    finding: str = ""  # one sentence, in bold
    question: str = ""  # what is checked
    summary: str = ""  # the finding as a clause, for the summary of a whole
    drawings: Mapping[str, Draw] = field(default_factory=dict)  # file name without .svg -> drawing function
    claims: tuple[Claim, ...] = ()  # tested by this part, those of its own parts excepted

    def parts(self) -> Iterator[Section]:
        """Yield this section and all parts in it, in reading order."""
        yield self
        for each in self.contents:
            if isinstance(each, Section):
                yield from each.parts()

    def blocks(self, level: int = 1) -> Iterator[str | Table]:
        """Yield headings, texts and tables in reading order; ``level`` is that of the heading."""
        yield f"{'#' * level} {self.title}"
        if self.finding:
            yield f"**{self.finding}**"
        if self.question:
            yield f"Question: {self.question}"
        for each in self.contents:
            if isinstance(each, Section):
                yield from each.blocks(level + 1)
            else:
                yield each

    def as_markdown(self) -> str:
        """Return the Markdown of the section as a page; drawings that no text shows (``picture``) are at the end."""
        body = [block.as_markdown() if isinstance(block, Table) else block for block in self.blocks()]
        shown = "\n".join(body)
        names = (name for part in self.parts() for name in part.drawings)
        body += [picture(name, name) for name in names if f"]({name}.svg)" not in shown]
        return "\n\n".join(body) + "\n"

    def table(self, name: str = "") -> Table:
        """Return the table of that name; the main table's is empty. Raises ValueError unless there is exactly one."""
        (table,) = (block for block in self.blocks() if isinstance(block, Table) and block.name == name)
        return table


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Section):
    """A reproduced table or figure of the paper."""

    name: str  # table1, figure2, notes, ...
    pages: Mapping[str, str] = field(default_factory=dict)  # other files: name -> content


def sentence(clause: str) -> str:
    """Return a clause as a sentence.

    >>> sentence("it works")
    'It works.'
    """
    return f"{clause[0].upper()}{clause[1:]}."


def picture(name: str, alt: str) -> str:
    """Return the Markdown of a report's drawing, with a description for readers who do not see it."""
    return f"![{alt}]({name}.svg)"


def how_to_reproduce(name: str, *, seeds: str, hardware: str, scale: str = "cpu", note: str = "") -> str:
    """Return the paragraph with the command, seeds and hardware of a report.

    >>> how_to_reproduce("table2", seeds="seed 1", hardware="a CPU, torch 2")
    'To reproduce: `transduce paper table2 --scale cpu --out DIR`; seed 1; a CPU, torch 2.'
    """
    return f"To reproduce: `transduce paper {name} --scale {scale} --out DIR`; {seeds}; {hardware}." + (
        f" {note}" if note else ""
    )


def write_report(report: Report, folder: Path) -> list[Path]:
    """Write ``NAME.md``, its CSV files and drawings; return their paths, the Markdown first."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {f"{report.name}{block.name}.csv": block for block in report.blocks() if isinstance(block, Table)}
    drawings = {f"{name}.svg": draw for part in report.parts() for name, draw in part.drawings.items()}
    for name, draw in drawings.items():
        draw(folder / name)
    texts = {f"{report.name}.md": report.as_markdown(), **{name: table.as_csv() for name, table in tables.items()}}
    for name, text in (texts | dict(report.pages)).items():
        write_text(folder / name, text)
    return [folder / name for name in (*texts, *drawings, *report.pages)]
