"""The pages of the Python API: the public names of ``transduce`` and of its packages, with their docstrings."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from markdown import cell, prose, table
from pydantic import BaseModel

import transduce

__all__ = ["public_packages", "python_api", "python_packages"]

WIDTH = 88
STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
API = """# Python API

What `import transduce` offers. The names of its packages are on [a page of their own](python-packages.md).

"""
PACKAGES = """# Python packages

The public names of the packages of `transduce`, for extensions and research.

"""


def python_api() -> str:
    """Return the page of the names of ``transduce``."""
    values = {name: getattr(transduce, name) for name in transduce.__all__}
    ordered = sorted(values, key=lambda name: (_rank(values[name]), name))
    return API + "\n".join(part for name in ordered for part in _entry(name, values[name], 2))


def python_packages() -> str:
    """Return the page of the names of its packages."""
    parts = [PACKAGES]
    for name in public_packages():
        package = importlib.import_module(name)
        rows = [(f"`{each}`", cell(_summary(getattr(package, each)))) for each in sorted(package.__all__)]
        parts.append(f"## {name}\n\n{prose(inspect.getdoc(package))}\n\n{table(('name', 'what it is'), rows)}")
    return "\n".join(parts)


def public_packages() -> list[str]:
    """Return the packages below ``transduce`` that list public names."""
    names = [each.name for each in pkgutil.walk_packages(transduce.__path__, "transduce.") if each.ispkg]
    return [name for name in names if hasattr(importlib.import_module(name), "__all__")]


def _rank(value: Any) -> int:
    """Return where a name stands: functions, classes, settings, exceptions."""
    if not inspect.isclass(value):
        return 0
    return 3 if issubclass(value, BaseException) else 2 if issubclass(value, BaseModel) else 1


def _summary(value: Any) -> str:
    """Return the first paragraph of a docstring, or the value of a constant."""
    if inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, ModuleType):
        return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("``", "`")
    if hasattr(value, "__origin__"):
        return "An annotated type."
    text = repr(value)
    return f"`{text}`" if len(text) <= WIDTH and not set(text) & set("`|<") else f"A {type(value).__name__}."


def _entry(name: str, value: Any, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}\n"
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        is_plain = issubclass(value, (BaseException, BaseModel))
        yield _code(f"class {name}({bases})" if is_plain else f"class {_signature(name, value)}")
        yield f"{prose(inspect.getdoc(value))}\n"
        if issubclass(value, BaseModel):
            yield "Its fields: [recipe keys](recipe-keys.md).\n"
            return
        yield from (part for each, member in _members(value) for part in _entry(f"{name}.{each}", member, level + 1))
        return
    if not isinstance(value, property):
        yield _code(f"def {_signature(name.rpartition('.')[2], value)}")
    yield f"{prose(inspect.getdoc(value))}\n"
    if options := _options(value):
        yield f"The options: {', '.join(f'`{option}`' for option in options)}.\n"


def _options(function: Any) -> list[str]:
    """Return the keyword arguments that a TypedDict names."""
    parameters = [] if isinstance(function, property) else inspect.signature(function).parameters.values()
    for each in parameters:
        if named := re.fullmatch(r"Unpack\[(\w+)\]", str(each.annotation)):
            owners = [module for name, module in sys.modules.items() if name.startswith("transduce.")]
            return list(next(vars(owner)[named[1]] for owner in owners if named[1] in vars(owner)).__annotations__)
    return []


def _plain(annotation: Any) -> str:
    """Return an annotation as it is written."""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _members(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that a class of this project has, its own first."""
    seen: set[str] = set()
    for base in owner.__mro__:
        if not base.__module__.startswith("transduce"):
            continue
        for name, member in list(vars(base).items()):
            function = getattr(member, "__func__", member)
            is_shown = inspect.isfunction(function) or isinstance(member, property)
            if is_shown and not name.startswith("_") and name not in seen and (inspect.getdoc(member) or ""):
                seen.add(name)
                yield name, function


def _code(line: str) -> str:
    return f"```python\n{line}\n```\n"


def _signature(name: str, function: Any) -> str:
    """Return the call of a function, in one line or with a line for each parameter."""
    signature = inspect.signature(function)
    words: list[str] = []
    for parameter in signature.parameters.values():
        is_keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        if is_keyword and not any(word.startswith("*") for word in words):
            words.append("*")
        words.append(_parameter(parameter))
    returned = signature.return_annotation
    has_result = returned is not inspect.Signature.empty and not inspect.isclass(function)
    arrow = f" -> {_plain(returned)}" if has_result else ""
    line = f"{name}({', '.join(words)}){arrow}"
    return line if len(line) <= WIDTH else "\n".join([f"{name}(", *(f"    {word}," for word in words), f"){arrow}"])


def _parameter(parameter: inspect.Parameter) -> str:
    is_typed = parameter.annotation is not inspect.Parameter.empty
    kind = f": {_plain(parameter.annotation)}" if is_typed else ""
    default = parameter.default
    value = "..." if inspect.isroutine(default) else repr(default)
    end = "" if default is inspect.Parameter.empty else f" = {value}" if is_typed else f"={value}"
    return f"{STARS.get(parameter.kind, '')}{parameter.name}{kind}{end}"
