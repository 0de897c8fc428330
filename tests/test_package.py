"""The public names of the package, and the cost of importing it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import transduce


def test_all_is_sorted_and_complete() -> None:
    assert transduce.__all__ == sorted(transduce.__all__)
    for name in transduce.__all__:
        value = getattr(transduce, name)
        assert value.__name__ == name
        assert value.__module__.startswith("transduce.")
    errors = {name for name, value in vars(transduce.errors).items() if isinstance(value, type)}
    assert errors <= set(transduce.__all__)
    with pytest.raises(AttributeError, match="'Transformre'"):
        _ = transduce.Transformre


WITHOUT_TORCH = [
    "import transduce; transduce.ModelConfig",
    "import transduce.metrics, transduce.text, transduce.corpora, transduce.recipes",
    "from transduce.cli.main import run; run(['score', '--help']); run(['corpus', 'list']); run(['train', '-h'])",
    "from transduce.cli.main import run; run(['doctor', 'grammar', 'no/such'])",
    "from transduce.cli.main import run; assert run(['corpus', 'get', 'nosuch']) == 1; import transduce.cli.progress",
]


def test_each_configuration_can_be_the_first_that_is_imported() -> None:
    program = "from transduce.config import DataConfig; print(type(DataConfig()).__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "ParallelData\n", done.stderr


def test_torch_is_not_imported_without_need() -> None:
    program = f"import sys\nfor each in {WITHOUT_TORCH}:\n    exec(each)\n    assert 'torch' not in sys.modules, each"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
