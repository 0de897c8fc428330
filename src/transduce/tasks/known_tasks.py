"""The tasks by their names, and which of them a run is of."""

from __future__ import annotations

from transduce.config import RunConfig
from transduce.tasks.parsing import Parsing
from transduce.tasks.task import Task
from transduce.tasks.translation import Translation

__all__ = ["TASKS", "task_of"]

TASKS: dict[str, Task] = {task.name: task for task in (Translation(), Parsing())}


def task_of(config: RunConfig) -> Task:
    """What a run trains for."""
    return TASKS["parsing" if config.data.target == "trees" else "translation"]
