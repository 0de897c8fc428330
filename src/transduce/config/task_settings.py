"""Which tasks read a setting, where not all do. A setting of other tasks is refused: it would have no effect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from transduce.config.record import one_of

__all__ = ["ALIGNMENT_TASKS", "MEDIA_TASKS", "PAIR_TASKS", "READ_BY", "require_read", "without_unread"]

TRANSLATION_TASKS = ("translation", "mask-predict")
PAIR_TASKS = (*TRANSLATION_TASKS, "parsing")
TEXT_TASKS = ("causal-lm", "masked-lm", "span-corruption")
MEDIA_TASKS = ("image-to-text", "speech-to-text")
POLICY_TASKS = ("ppo", "reinforce")
# Supervised fine-tuning, reward model, direct preference optimisation, proximal policy optimisation, REINFORCE.
ALIGNMENT_TASKS = ("sft", "reward", "dpo", *POLICY_TASKS)
TASKS = (*PAIR_TASKS, *TEXT_TASKS, "pixels", *ALIGNMENT_TASKS, *MEDIA_TASKS)
OTHERS = "another"  # a task that is not among these

_ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("data.train_src data.train_tgt data.train_tsv data.masks", (*TRANSLATION_TASKS, OTHERS)),
    ("data.dev_src data.dev_tgt data.dev_tsv", (*TRANSLATION_TASKS, *TEXT_TASKS, OTHERS)),
    ("data.test_src data.test_tgt data.test_tsv", (*TRANSLATION_TASKS, *TEXT_TASKS, OTHERS)),
    ("data.also_dev", PAIR_TASKS),
    ("data.bpe_dropout", (*PAIR_TASKS, OTHERS)),
    ("data.train_trees data.dev_trees data.test_trees data.treebank data.leaves data.recombination", ("parsing",)),
    ("data.train_text data.dev_text data.test_text", (*TEXT_TASKS, OTHERS)),
    ("data.language", (*TEXT_TASKS, "image-to-text", OTHERS)),
    ("data.train_prompts data.dev_prompts data.test_prompts", ALIGNMENT_TASKS),
    ("data.train_media data.dev_media data.test_media", MEDIA_TASKS),
    ("data.image_height data.max_image_width", ("image-to-text", OTHERS)),
    ("data.training_fonts data.test_fonts data.training_noise data.test_noise", ("image-to-text", OTHERS)),
    ("data.n_bands data.max_seconds data.training_voices data.test_voices", ("speech-to-text", OTHERS)),
    ("data.max_pairs", (*PAIR_TASKS, *TEXT_TASKS, "pixels", OTHERS)),
    ("data.max_characters data.drop_duplicates", (*PAIR_TASKS, *TEXT_TASKS, OTHERS)),
    ("data.max_length_ratio data.drop_identical", (*TRANSLATION_TASKS, *TEXT_TASKS, OTHERS)),
    ("training.both_ways_epochs", (*TRANSLATION_TASKS, OTHERS)),
    ("training.r_drop training.r_drop_after", ("translation", "parsing", *MEDIA_TASKS, OTHERS)),
    ("training.feature_masks training.ctc_weight", MEDIA_TASKS),
    ("alignment.centring", ("reward", OTHERS)),
    ("alignment.beta alignment.max_response", ("dpo", *POLICY_TASKS, OTHERS)),
    ("alignment.reward_model alignment.target_kl alignment.kl_horizon", (*POLICY_TASKS, OTHERS)),
    ("alignment.rollout_size alignment.batch_size alignment.n_samples", (*POLICY_TASKS, OTHERS)),
    ("alignment.temperature alignment.unfinished_score", (*POLICY_TASKS, OTHERS)),
    ("alignment.n_passes alignment.gamma alignment.gae_lambda alignment.clip_ratio", ("ppo", OTHERS)),
    ("alignment.clip_value alignment.value_weight alignment.whiten_rewards", ("ppo", OTHERS)),
)
READ_BY: Mapping[str, tuple[str, ...]] = {name: tasks for names, tasks in _ROWS for name in names.split()}


def is_read(setting: str, task: str) -> bool:
    """Return whether a task reads a setting, as in "data.train_src"."""
    return setting not in READ_BY or (task if task in TASKS else OTHERS) in READ_BY[setting]


def require_read(table: str, record: BaseModel, task: str) -> None:
    """Raise ValueError for a setting of a table that differs from its default and that the task does not read."""
    for name, field in type(record).model_fields.items():
        setting = f"{table}.{name}"
        if not is_read(setting, task) and getattr(record, name) != field.default:
            raise ValueError(
                f"{setting} is for task = {one_of([each for each in READ_BY[setting] if each != OTHERS])}, got task ="
                f" {task!r}{_hint(setting, task)}"
            )


def without_unread(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return recorded tables without the settings that their task does not read; earlier versions ignored them.

    >>> without_unread({"data": {"task": "sft", "dev_text": "a.txt", "max_length": 9}})
    {'data': {'task': 'sft', 'max_length': 9}}
    """
    data = tables.get("data")
    task = str(data.get("task", "translation")) if isinstance(data, Mapping) else "translation"
    return {
        table: {name: value for name, value in fields.items() if is_read(f"{table}.{name}", task)}
        if isinstance(fields, Mapping)
        else fields
        for table, fields in tables.items()
    }


def _hint(setting: str, task: str) -> str:
    """Name the files of the same split that a task reads, as a clause of a message."""
    split = re.match(r"data\.(train|dev|test)_", setting)
    others = [each for each in READ_BY if split and each.startswith(split[0]) and is_read(each, task)]
    return f"; its files are {', '.join(others)}" if others else "; leave it out"
