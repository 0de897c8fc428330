"""Every registered task passes the checks of ``task_suite``; its recipe is a row of ``small_recipes``."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_recipes import SMALL_TASKS, SmallRuns
from task_suite import CHECKS

from transduce.tasks import TASKS


def test_every_registered_task_has_a_small_recipe() -> None:
    assert [task.name for task in SMALL_TASKS] == list(dict.fromkeys(task.name for task in SMALL_TASKS))
    assert {task.name for task in SMALL_TASKS} == TASKS.keys()


@pytest.mark.parametrize(
    "check", [pytest.param(name, marks=[pytest.mark.reliability] if name == "resume" else []) for name in CHECKS]
)
@pytest.mark.parametrize("task", [task.name for task in SMALL_TASKS])
def test_it_passes(small_runs: SmallRuns, task: str, check: str, tmp_path: Path) -> None:
    other = "mask-predict" if task == "translation" else "translation"
    CHECKS[check](small_runs[task], tmp_path, small_runs[other])
