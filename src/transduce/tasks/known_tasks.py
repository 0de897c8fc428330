"""The tasks by their names, and which of them a run is of."""

from __future__ import annotations

from transduce.config import RunConfig, nearest_name
from transduce.errors import ConfigError
from transduce.tasks.parsing import Parsing
from transduce.tasks.task import Task
from transduce.tasks.translation import Translation

__all__ = ["TASKS", "task_of"]

TASKS: dict[str, Task] = {task.name: task for task in (Translation(), Parsing())}


def task_of(config: RunConfig) -> Task:
    """What a run trains for. Raises ConfigError, naming the nearest one, if there is no such task."""
    name = config.data.task
    if name not in TASKS:
        raise ConfigError(f"data.task: unknown task {name!r}; {nearest_name(name, TASKS)}")
    return TASKS[name]
