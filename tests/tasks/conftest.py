"""Small runs of every task, each trained once for all test files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))  # for small_recipes.py and task_suite.py


@pytest.fixture(scope="session")
def small_runs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """``small_runs["sft"]`` is the finished run of the small recipe of a task. Read only."""
    from small_recipes import SmallRuns

    return SmallRuns(tmp_path_factory.mktemp("small"))
