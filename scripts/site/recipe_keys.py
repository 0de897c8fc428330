"""The page of the keys of recipes: each with its type, its default and the comment beside it in the source."""

from __future__ import annotations

import ast
import inspect
import io
import json
import tokenize
import types
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import takewhile
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from markdown import cell, prose, table
from pydantic.fields import FieldInfo

import transduce.recipes as recipes
from transduce.config import DataConfig, ModelConfig, RunConfig, SearchConfig
from transduce.config.record import Record
from transduce.config.task_settings import known_tasks, readers_of

__all__ = ["comments_of", "recipe_keys"]

HEAD = """# Recipe keys

All keys of a recipe, the TOML file that [`train`](command-line.md#train) reads, by table. A key that is left out has
its default, or the value of the preset. On the command line `--set` sets a key: `--set training.seed=2`.

The presets, which the key `preset` at the top of the file names:

"""
TABLES: dict[str, type[Record]] = {"data": DataConfig, "model": ModelConfig, "search": SearchConfig}
LARGEST = 10**4  # limits from here on only catch typing errors


def recipe_keys() -> str:
    """Return the page."""
    described = {name: _first_line(make) for name, make in recipes.PRESETS.items()}
    presets = table(("preset", "what it is"), [(f"`{name}`", cell(what)) for name, what in described.items() if what])
    rows = ", ".join(f"`{name}`" for name, what in described.items() if not what)
    parts = [f"{HEAD}{presets}\nThe other rows of Table 3: {rows}.\n"]
    for name, field in RunConfig.model_fields.items():
        base = TABLES.get(name, field.annotation)
        assert isinstance(base, type)
        parts.append(f"## [{name}]\n\n{prose(_first_line(base))}\n")
        parts += [_record(name, each, base) for each in _records(base) if _own_fields(each)]
    return "\n".join(parts)


def _records(base: type[Record]) -> list[type[Record]]:
    """Return the records that one table may be, with those that they inherit fields from, the common ones first."""
    members = [each.settings for each in known_tasks().values()] if base is DataConfig else _below(base)
    every = [each for member in [base, *members] for each in reversed(member.__mro__)]
    return [each for each in dict.fromkeys(every) if issubclass(each, Record) and each is not Record]


def _below(record: type[Record]) -> list[type[Record]]:
    return [each for child in record.__subclasses__() for each in (child, *_below(child))]


def _own_fields(record: type[Record]) -> dict[str, FieldInfo]:
    return {
        name: field for name, field in record.model_fields.items() if name in vars(record).get("__annotations__", {})
    }


def _record(name: str, record: type[Record], base: type[Record]) -> str:
    comments = comments_of(record)
    rows = [
        (f"`{key}`", cell(comments[key] + _readers(name, key)), _default(field), _type(field))
        for key, field in _own_fields(record).items()
    ]
    head = "" if record is base else f"### {record.__name__}\n\n{prose(_first_line(record))}{_tasks(record, base)}\n\n"
    return head + table(("key", "what it sets", "default", "type"), rows)


def _tasks(record: type[Record], base: type[Record]) -> str:
    if base is not DataConfig:
        return ""
    names = [f"`{name}`" for name, task in known_tasks().items() if issubclass(task.settings, record)]
    return f" Tasks: {', '.join(names)}."


def _readers(table_name: str, key: str) -> str:
    """Name the tasks that read a key, if it is in the table of all tasks and not all do."""
    readers = readers_of(f"{table_name}.{key}")
    if table_name == "data" or len(readers) == len(known_tasks()) or table_name == "search":
        return ""
    return f" (tasks: {', '.join(readers)})"


def _first_line(thing: object) -> str:
    return inspect.cleandoc(inspect.getdoc(thing) or "").partition("\n\n")[0]


def _default(field: FieldInfo) -> str:
    value = field.default
    return "required" if field.is_required() else "none" if value is None else f"`{json.dumps(value)}`"


def _type(field: FieldInfo) -> str:
    return _annotation(field.annotation) + _limits(field.metadata)


def _limits(metadata: Iterable[Any]) -> str:
    """Return the limits of a number in words; those that only catch typing errors are left out."""
    found = {type(each): each for each in metadata}
    words = []
    if Ge in found or Gt in found:
        words.append(f"from {found[Ge].ge:g}" if Ge in found else f"above {found[Gt].gt:g}")
    if Le in found or Lt in found:
        most = found[Le].le if Le in found else found[Lt].lt
        words += [f"{'to' if Le in found else 'below'} {most:g}"] if most < LARGEST else []
    return f" {' '.join(words)}" if words else ""


def _annotation(annotation: Any) -> str:
    """Return a type in the words of TOML."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{json.dumps(each)}`" for each in args)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_annotation(each) for each in args if each is not type(None)))
    if origin is tuple:
        return f"array: {_annotation(args[0])}"
    if origin is dict:
        return "table"
    if hasattr(annotation, "__metadata__"):  # Annotated
        inner, *metadata = args
        return _annotation(inner) + _limits(part for each in metadata for part in getattr(each, "metadata", [each]))
    return {str: "string", int: "integer", float: "number", bool: "boolean"}[annotation]


@cache
def _source(record: type[Record]) -> tuple[str, dict[int, str]]:
    """Return the source of a record, and its comments by line."""
    source = inspect.getsource(record)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return source, {each.start[0]: each.string.lstrip("# ") for each in tokens if each.type == tokenize.COMMENT}


@cache
def comments_of(record: type[Record]) -> dict[str, str]:
    """Return the comment of each field that a record adds: the lines above it, and what stands in its own lines.

    A field without a comment has the lines above the field before it, if that has them, or the comment of the field
    that it replaces. Raises ValueError for a field without any.
    """
    source, comments = _source(record)
    lines = source.splitlines()
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    shared = ""
    for field in _fields(definition):
        assert isinstance(field.target, ast.Name)
        assert field.end_lineno is not None
        numbers = range(field.lineno - 1, 0, -1)
        above = list(takewhile(lambda number: lines[number - 1].lstrip().startswith("#"), numbers))
        block = " ".join(comments[number] for number in reversed(above))
        beside = " ".join(comments[n] for n in range(field.lineno, field.end_lineno + 1) if n in comments)
        shared = block or (shared if not beside and lines[field.lineno - 2].strip() else "")
        found[field.target.id] = " ".join(filter(None, (shared, beside)))
    inherited = [comments_of(base) for base in record.__mro__[1:] if issubclass(base, Record) and base is not Record]
    fields = {
        name: text or next((each[name] for each in inherited if name in each), "")
        for name, text in found.items()
        if name in record.model_fields
    }
    if missing := [name for name, text in fields.items() if not text]:
        raise ValueError(f"{record.__name__} has fields without a comment: {', '.join(missing)}")
    return fields


def _fields(definition: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    return (each for each in definition.body if isinstance(each, ast.AnnAssign))
