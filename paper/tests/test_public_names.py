"""The reports use ``transduce`` as anybody can: only names that a package or a top-level module has in ``__all__``."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import transduce_paper

TESTS = Path(__file__).parent
FILES = sorted({*Path(transduce_paper.__file__).parent.rglob("*.py"), *TESTS.rglob("*.py")} - {Path(__file__)})


def is_public(module: str) -> bool:
    """Whether a module of ``transduce`` is a package, or stands beside the packages."""
    spec = find_spec(module)
    assert spec is not None, module
    return spec.submodule_search_locations is not None or module.count(".") == 1


def violations(source: str) -> Iterator[str]:
    """What a file takes of ``transduce`` and should not, imported or patched by its name in a string."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for name in (each.name for each in node.names if each.name.split(".")[0] == "transduce"):
                if not is_public(name):
                    yield name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "transduce":
            module = str(node.module)
            for name in (each.name for each in node.names):
                if not is_public(module) or name not in importlib.import_module(module).__all__:
                    yield f"{module}: {name}"
        elif isinstance(node, ast.Constant) and re.fullmatch(r"transduce(\.\w+){2,}", str(node.value)):
            module, _, name = node.value.rpartition(".")
            if not is_public(module) or name not in importlib.import_module(module).__all__:
                yield node.value


def test_only_public_names_are_used() -> None:
    assert len(FILES) > 100
    found = {f"{path.name}: {each}" for path in FILES for each in violations(path.read_text(encoding="utf-8"))}
    assert not found


def test_what_is_not_public_is_found() -> None:
    source = [
        "import transduce.model.attention",
        "from transduce.runs import run_lock, devices",
        "from transduce.runs.lock import lock_holder",
        "from transduce.trees import parse_tree, _labels",
        "patch('transduce.model.stack.causal_mask')",
    ]
    assert list(violations("\n".join(source))) == [
        "transduce.model.attention", "transduce.runs: devices", "transduce.runs.lock: lock_holder",
        "transduce.trees: _labels", "transduce.model.stack.causal_mask",
    ]  # fmt: skip
