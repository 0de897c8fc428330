"""The committed mutants of ``benchmarks/mutants.py`` fit the source."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "mutant_list.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="an installed package has no benchmarks")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutant_list", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutant_list", module)
    spec.loader.exec_module(module)
    return module


def test_most_mutants_still_apply(script: ModuleType) -> None:
    """Each changes one line of today's source; where more than a tenth no longer do, choose them anew."""
    mutants = script.read_mutants()
    n_applied = 0
    for mutant in mutants:
        path = ROOT / "src" / "transduce" / mutant.file
        source = path.read_text() if path.exists() else ""
        number = mutant.line(source)
        if number is None:
            continue
        old, new = source.splitlines(), mutant.applied_to(source).splitlines()
        assert [n for n, (before, after) in enumerate(zip(old, new, strict=True), 1) if before != after] == [number]
        ast.parse("\n".join(new))
        n_applied += 1
    assert n_applied >= 0.9 * len(mutants)


def test_code_that_is_gone_is_told_from_code_that_has_moved(script: ModuleType) -> None:
    mutant = script.Mutant(1, "x.py", "A.f", "core/NumberReplacer", 1, "a = 1", "a = 2")
    source = "class A:\n    def f(self):\n        a = 1\n        a = 1\n"
    assert mutant.line(source) == 4
    assert mutant.applied_to("\n\n" + source) == "\n\n" + source.removesuffix("1\n") + "2\n"
    assert mutant.line(source.replace("def f", "def g")) is None
