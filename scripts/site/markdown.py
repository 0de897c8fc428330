"""Parts of generated Markdown: cells of tables, and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence

__all__ = ["cell", "prose", "table"]


def cell(text: str) -> str:
    """Return text as a cell of a table: in one line, nothing of it read as Markdown or HTML but spans of code."""
    return _escaped(" ".join(text.replace("``", "`").split()), r"[\\*_\[\]|]")


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table of cells."""
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def prose(docstring: str | None) -> str:
    """Return a docstring as Markdown: examples become blocks of code, indented text stays a paragraph."""
    parts: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(docstring or "")):
        text = inspect.cleandoc(paragraph)
        is_code = text.startswith(">>>") or (parts and parts[-1].endswith("::"))
        text = re.sub(r"``([^`]+)``", r"`\1`", text)
        parts.append(f"```pycon\n{inspect.cleandoc(paragraph)}\n```" if is_code else _escaped(text))
    return "\n\n".join(re.sub(r"::\Z", ":", part) for part in parts if part)


def _escaped(text: str, special: str = r"[*_\[\]]") -> str:
    """Return text whose special characters are no markup, except in spans of code."""
    parts = re.split(r"(`[^`]+`)", text)
    for i, part in enumerate(parts[::2]):
        parts[2 * i] = re.sub(special, r"\\\g<0>", part.replace("<", "&lt;"))
    return "".join(parts)
