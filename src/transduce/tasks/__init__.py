"""Tasks: what a model is trained for. A folder for each family: pairs, documents, prompts, media.

A task has data, model, objective, validation and evaluation (``task.py``); recipes name it (``registry.py``). The
modules of the families are all imported, so that their tasks register themselves.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

from transduce.tasks.pairs.parsing import ParsingScores, evaluate_parser
from transduce.tasks.pairs.shortlists import write_shortlist
from transduce.tasks.preparation import Preparation, Row, prepare
from transduce.tasks.prepared import Prepared, open_prepared
from transduce.tasks.registry import TASKS, register, task_named, task_of
from transduce.tasks.task import Task

__all__ = [
    "TASKS", "ParsingScores", "Preparation", "Prepared", "Row", "Task", "evaluate_parser", "open_prepared", "prepare",
    "register", "task_named", "task_of", "write_shortlist",
]  # fmt: skip

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)
