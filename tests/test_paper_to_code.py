"""docs/paper-to-code.md: every symbol that it names exists, and nothing of the paper is missing."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "paper-to-code.md"
SECTIONS = "1 2 3 3.1 3.2 3.2.1 3.2.2 3.2.3 3.3 3.4 3.5 4 5 5.1 5.2 5.3 5.4 6 6.1 6.2 6.3 7".split()
NUMBERED = [f"Equation {n}" for n in (1, 2, 3)] + [f"Table {n}" for n in range(1, 5)]
NUMBERED += [f"Figure {n}" for n in range(1, 6)] + ["Footnote 4", "Footnote 5"]


def rows() -> list[tuple[str, str]]:
    """(what of the paper, the cell with the code) of each row."""
    cells = [
        line.strip("|").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")
    ]
    return [(row[0].strip(), row[2]) for row in cells if row[0].strip() not in ("paper", "---")]


def named_symbols() -> list[tuple[str, str]]:
    named = [item.partition(": ") for _, cell in rows() for item in re.findall(r"`([^`]+)`", cell)]
    return sorted({(path, symbol.strip()) for path, _, symbols in named for symbol in symbols.split(",")})


@cache
def defined_in(path: Path) -> set[str]:
    """The names that a module defines itself, those in its classes as ``Class.name``."""
    names: set[str] = set()

    def add(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                add(node.body, f"{prefix}{node.name}.")
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                assigned = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
                names.update(prefix + name.id for name in assigned)

    add(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return names


def test_the_symbols_exist() -> None:
    def home(path: str) -> Path:
        return ROOT / "paper" / "src" if path.startswith("transduce_paper/") else ROOT / "src" / "transduce"

    missing = [f"{path}: {symbol}" for path, symbol in named_symbols() if symbol not in defined_in(home(path) / path)]
    assert missing == []


def test_every_row_names_code() -> None:
    assert len(rows()) > 50
    assert not [what for what, code in rows() if not re.search(r"`[^`:]+\.py: \w", code)]


def test_nothing_of_the_paper_is_missing() -> None:
    first_cells = [what for what, _ in rows()]
    sections = {what.split()[0] for what in first_cells}
    assert not [section for section in SECTIONS if section not in sections]
    assert not [what for what in NUMBERED if what not in first_cells]
