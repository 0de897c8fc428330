"""The registry of tasks by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transduce.config import RunConfig, nearest_name
from transduce.errors import ConfigError, quoted

if TYPE_CHECKING:
    from transduce.tasks.task import Task

__all__ = ["TASKS", "register", "task_named", "task_of"]

TASKS: dict[str, Task[Any]] = {}


def register(task: Task[Any]) -> None:
    """Register a task, so that recipes (``data.task``) and model folders can name it."""
    TASKS[task.name] = task


def task_named(name: object, *, where: str = "data.task") -> Task[Any]:
    """Return a task by name. Raises ConfigError, with the nearest name, for an unknown one."""
    if not isinstance(name, str) or name not in TASKS:
        raise ConfigError(f"{where}: unknown task {quoted(name)}; {nearest_name(str(name), TASKS)}")
    return TASKS[name]


def task_of(config: RunConfig) -> Task[Any]:
    """Return the task of a run. Raises ConfigError for an unknown one."""
    return task_named(config.data.task)
