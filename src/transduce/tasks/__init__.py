"""Tasks: what a model is trained for. A folder for each family: pairs, documents, prompts, media.

A task has data, model, objective, validation and evaluation (``task.py``); recipes name it (``registry.py``).
"""

from __future__ import annotations

from transduce.tasks.documents import causal, masked, pixels, spans  # noqa: F401  (tasks register themselves)
from transduce.tasks.media import images, speech  # noqa: F401
from transduce.tasks.pairs import mask_predict, parsing, translation  # noqa: F401
from transduce.tasks.pairs.parsing import ParsingScores, evaluate_parser
from transduce.tasks.pairs.shortlists import write_shortlist
from transduce.tasks.preparation import Preparation, Row, prepare
from transduce.tasks.prepared import Prepared, open_prepared
from transduce.tasks.prompts import dpo, ppo, reward, sft  # noqa: F401
from transduce.tasks.registry import TASKS, register, task_named, task_of
from transduce.tasks.task import Task

__all__ = [
    "TASKS", "ParsingScores", "Preparation", "Prepared", "Row", "Task", "evaluate_parser", "open_prepared", "prepare",
    "register", "task_named", "task_of", "write_shortlist",
]  # fmt: skip
