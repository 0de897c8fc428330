"""The tasks by their names: nothing else asks what a task is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transduce.config import RunConfig, nearest_name
from transduce.errors import ConfigError, quoted

if TYPE_CHECKING:
    from transduce.tasks.task import Task

__all__ = ["TASKS", "register", "task_named", "task_of"]

TASKS: dict[str, Task[Any]] = {}


def register(task: Task[Any]) -> None:
    """Make a task known, so that runs (``data.task``) and model folders can be of it."""
    TASKS[task.name] = task


def task_named(name: object, *, where: str = "data.task") -> Task[Any]:
    """A task by its name. Raises ConfigError, with the nearest one, if there is no such task."""
    if not isinstance(name, str) or name not in TASKS:
        raise ConfigError(f"{where}: unknown task {quoted(name)}; {nearest_name(str(name), TASKS)}")
    return TASKS[name]


def task_of(config: RunConfig) -> Task[Any]:
    """What a run trains for. Raises ConfigError for a task that there is not."""
    return task_named(config.data.task)
