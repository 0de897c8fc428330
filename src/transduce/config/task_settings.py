"""What the configuration needs to know of a task: its record of data settings, and what else of a recipe it reads.

Tasks are floors above, and those of other packages are not known here. So they are asked by name, of their registry,
which is imported when a recipe is read and not before. A setting that the task does not read is refused: it would have
no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pydantic import BaseModel

from transduce.config.record import nearest_name, one_of
from transduce.errors import shown

if TYPE_CHECKING:
    from transduce.config import RunConfig
    from transduce.config.data import DataConfig

__all__ = [
    "DEFAULT_TASK", "TaskSettings", "is_read", "known_tasks", "readers_of", "require_own", "require_read",
    "task_settings", "tasks_that_generate", "without_unread",
]  # fmt: skip

REGISTRY = "transduce.tasks.registry"
DATA = "data"
DEFAULT_TASK = "translation"  # of data.task


class TaskSettings(Protocol):
    """The settings of a task."""

    name: ClassVar[str]
    settings: ClassVar[type[DataConfig]]
    reads: ClassVar[frozenset[str]]  # of other tables what not every task reads, as in "training.r_drop"
    searches: ClassVar[tuple[str, ...]]  # kinds of search; none if its models do not search

    def require_fit(self, config: RunConfig) -> None:
        """Raise ValueError if settings do not fit the task."""


def task_settings(task: object) -> TaskSettings:
    """Return the settings of a task. Raises ConfigError for an unknown one."""
    found: TaskSettings = import_module(REGISTRY).task_named(task)
    return found


def known_tasks() -> Mapping[str, TaskSettings]:
    """Return all registered tasks."""
    tasks: Mapping[str, TaskSettings] = import_module(REGISTRY).TASKS
    return tasks


def is_read(setting: str, task: TaskSettings) -> bool:
    """Return whether a task reads a setting, as in "data.train_src"."""
    table, _, name = setting.partition(".")
    if table == DATA:
        return name in task.settings.model_fields
    if table == "search":
        return bool(task.searches)
    return setting in task.reads or setting not in _read_by_some()


def readers_of(setting: str) -> list[str]:
    """Return the names of the tasks that read a setting."""
    return [name for name, task in known_tasks().items() if is_read(setting, task)]


def tasks_that_generate(corpus: str) -> str:
    """Return the names of the tasks that learn from a generated corpus, for messages."""
    return one_of([name for name, task in known_tasks().items() if corpus in task.settings.generated])


def require_own(record: type[DataConfig], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table of data settings without those of other tasks that have their default there.

    Raises ValueError for another value of such a setting, and for a setting that no task reads.
    """
    own = {name: value for name, value in values.items() if name in record.model_fields}
    task = values.get(record.tag, record.model_fields[record.tag].default)
    for name in (name for name in values if name not in own):
        records = [each.settings for each in known_tasks().values() if name in each.settings.model_fields]
        if not records:
            every = dict.fromkeys(each for known in known_tasks().values() for each in known.settings.model_fields)
            key = shown(f"{DATA}.{name}")
            raise ValueError(f"unknown key {key}; {nearest_name(str(name), record.model_fields, every)}")
        value, default = values[name], records[0].model_fields[name].default
        if (tuple(value) if isinstance(value, list) else value) != default:
            raise ValueError(_refusal(f"{DATA}.{name}", task, record.model_fields))
    return own


def require_read(table: str, record: BaseModel, task: TaskSettings) -> None:
    """Raise ValueError for a setting of a table that differs from its default and that the task does not read."""
    for name, field in type(record).model_fields.items():
        if getattr(record, name) != field.default and not is_read(f"{table}.{name}", task):
            raise ValueError(_refusal(f"{table}.{name}", task.name, ()))


def without_unread(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return recorded tables without the settings that their task does not read; earlier versions ignored them.

    >>> without_unread({"data": {"train_trees": "a.ptb", "max_length": 9}})
    {'data': {'max_length': 9}}
    """
    data = tables.get(DATA)
    task = task_settings(data.get("task", DEFAULT_TASK) if isinstance(data, Mapping) else DEFAULT_TASK)
    return {
        table: dict(_known(table, fields.items(), task)) if isinstance(fields, Mapping) else fields
        for table, fields in tables.items()
        if table != "search" or task.searches
    }


def _known(table: str, fields: Iterable[tuple[str, Any]], task: TaskSettings) -> Iterator[tuple[str, Any]]:
    """Yield the settings that a task reads, and those that no task does, which are faults of the file."""
    for name, value in fields:
        setting = f"{table}.{name}"
        if is_read(setting, task) or not readers_of(setting):
            yield name, value


def _read_by_some() -> set[str]:
    return {setting for task in known_tasks().values() for setting in task.reads}


def _refusal(setting: str, task: str, own: Iterable[str]) -> str:
    """Say which tasks read a setting, and name the files of the same split that ``task`` reads, if it is one."""
    split = re.match(r"data\.((train|dev|test)_)", setting)
    others = [f"{DATA}.{name}" for name in own if split and name.startswith(split[1])]
    hint = f"its files are {', '.join(others)}" if others else "leave it out"
    return f"{setting} is for task = {one_of(readers_of(setting))}, got task = {task!r}; {hint}"
