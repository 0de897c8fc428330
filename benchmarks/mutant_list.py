"""Mutants of the core of transduce, and where in the source they are."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MUTANTS = Path(__file__).resolve().parent.parent / "tests" / "mutants.json"
FOLDERS = ("model", "search", "training", "data", "text", "loss.py")


@dataclass(frozen=True)
class Mutant:
    """One changed line: the ``occurrence``-th line (from 0) of ``function`` that reads ``before`` reads ``after``."""

    id: int
    file: str  # in src/transduce
    function: str  # qualified name
    operator: str
    occurrence: int
    before: str
    after: str

    @property
    def folder(self) -> str:
        """The part of the package that the mutant is in."""
        return self.file.split("/")[0]

    def line(self, source: str) -> int | None:
        """The number of the line that it changes; None if the code is no longer there."""
        for name, first, last in functions(source):
            if name == self.function:
                lines = enumerate(source.splitlines()[first - 1 : last], first)
                same = [number for number, line in lines if line.strip() == self.before.strip()]
                return same[self.occurrence] if self.occurrence < len(same) else None
        return None

    def applied_to(self, source: str) -> str:
        """The mutated source. Raises ValueError if the code is no longer there."""
        number = self.line(source)
        if number is None:
            raise ValueError(f"mutant {self.id} no longer applies to {self.file}")
        lines = source.splitlines(keepends=True)
        indent = re.match(r"\s*", lines[number - 1])
        lines[number - 1] = f"{indent[0] if indent else ''}{self.after.strip()}\n"
        return "".join(lines)


def read_mutants(path: Path = MUTANTS) -> list[Mutant]:
    """The committed list."""
    return [Mutant(**fields) for fields in json.loads(path.read_text())]


@cache
def functions(source: str) -> list[tuple[str, int, int]]:
    """Qualified name, first and last line of each function, the outermost only."""

    def inside(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{prefix}{child.name}", child.lineno, child.end_lineno or child.lineno
            elif isinstance(child, ast.ClassDef):
                yield from inside(child, f"{prefix}{child.name}.")

    return list(inside(ast.parse(source), ""))


@cache
def statements(source: str) -> list[range]:
    """The lines of each statement, outer ones first; of compound statements, their heads."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            found.append(range(node.lineno, max(last, node.lineno) + 1))
    return found


def statement(source: str, line: int) -> range:
    """The lines of the innermost statement around a line."""
    return next((lines for lines in reversed(statements(source)) if line in lines), range(line, line + 1))


def package(src: Path) -> Path:
    """The package of a source tree."""
    return src / "transduce"
