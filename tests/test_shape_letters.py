"""One letter, one meaning: the shape suffixes of tensors, held against docs/glossary.md and each module's legend."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "transduce"
SUFFIX = re.compile(r"^_?[a-z][a-z0-9]*(?:_[a-z0-9]+)*_([A-Z0-9]{1,5})$")
MODULES = sorted(SOURCE.rglob("*.py"))


def fixed_letters() -> dict[str, str]:
    """The letters that mean the same everywhere, with their meanings."""
    section = (
        (ROOT / "docs" / "glossary.md")
        .read_text(encoding="utf-8")
        .partition("## Shape letters")[2]
        .partition("\n## ")[0]
    )
    return dict(re.findall(r"^\| ([A-Z]) \| (.+) \|$", section, flags=re.MULTILINE))


def legend_of(module: Path) -> dict[str, str]:
    """What the sentence "Shapes: ..." of a module's docstring says of each letter."""
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    found = re.search(r"^Shapes: (.+?)(?:\n\n|\Z)", docstring, flags=re.MULTILINE | re.DOTALL)
    items = re.split(r"[,;] (?=[A-Z] )", " ".join(found.group(1).split()) if found else "")
    return {item[0]: item[2:].rstrip(".") for item in items if re.match(r"[A-Z] [\w=]", item)}


def letters_in(module: Path) -> set[str]:
    """The letters of the shape suffixes in a module's names."""
    tokens = tokenize.generate_tokens(io.StringIO(module.read_text(encoding="utf-8")).readline)
    suffixes = (SUFFIX.match(token.string) for token in tokens if token.type == tokenize.NAME)
    return {letter for suffix in suffixes if suffix for letter in suffix.group(1) if letter.isalpha()}


def test_letters_are_found() -> None:
    assert {"B", "D", "H", "K", "N", "S", "T", "V"} <= set(fixed_letters())
    assert {"B", "D", "H", "T"} <= letters_in(SOURCE / "model" / "attention.py")


def words(text: str) -> set[str]:
    """The words of a meaning, in the singular."""
    return {word.removesuffix("s") for word in re.findall(r"d_\w+|[a-z]{3,}", text)}


def test_each_letter_has_one_meaning() -> None:
    fixed, unknown, other = fixed_letters(), [], []
    for module in MODULES:
        legend, name = legend_of(module), module.relative_to(SOURCE).as_posix()
        unknown += [f"{name}: {letter}" for letter in sorted(letters_in(module) - set(fixed) - set(legend))]
        other += [
            f"{name}: {letter} is {meaning}"
            for letter, meaning in legend.items()
            if letter in fixed and not meaning.startswith("=") and not words(meaning) & words(fixed[letter])
        ]
    assert unknown == []
    assert other == []
