"""The registry of tasks by name.

A distribution adds tasks by entry points of the group ``transduce.tasks``: the name is that of the task, the object the
task or a module that registers it. They are imported when a recipe or a folder names them.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from transduce.config import RunConfig, nearest_name
from transduce.errors import ConfigError, quoted
from transduce.inference.trained_model import TASK_GROUP

if TYPE_CHECKING:
    from transduce.tasks.task import Task

__all__ = ["TASKS", "register", "task_named", "task_of"]

TASKS: dict[str, Task[Any]] = {}


def register(task: Task[Any]) -> None:
    """Register a task, so that recipes (``data.task``) and model folders can name it."""
    TASKS[task.name] = task


def task_named(name: object) -> Task[Any]:
    """Return a task by name. Raises ConfigError for an unknown one, and for one that cannot be imported."""
    if isinstance(name, str) and name in TASKS:
        return TASKS[name]
    added = {each.name: each for each in entry_points(group=TASK_GROUP)}
    if not isinstance(name, str) or name not in added:
        raise ConfigError(f"data.task: unknown task {quoted(name)}; {nearest_name(str(name), [*TASKS, *added])}")
    _load(added[name])
    return TASKS[name]


def _load(entry_point: EntryPoint) -> None:
    """Import an added task. Raises ConfigError if that fails, whatever the reason, or if it has another name."""
    distribution = entry_point.dist.name if entry_point.dist else entry_point.value
    what = f"the task {quoted(entry_point.name)} of {distribution}"
    try:
        found = entry_point.load()
    except Exception as error:
        raise ConfigError(
            f"{what} cannot be imported ({type(error).__name__}: {error}); update or uninstall {distribution}"
        ) from error
    if getattr(found, "name", None) == entry_point.name:
        register(found)
    if entry_point.name not in TASKS:
        raise ConfigError(f"{what}: {entry_point.value} neither is nor registers a task of that name")


def task_of(config: RunConfig) -> Task[Any]:
    """Return the task of a run. Raises ConfigError for an unknown one."""
    return task_named(config.data.task)
