"""Training runs: from recipe to model folder, resumed if interrupted; run folders; new recipes."""

from __future__ import annotations

from transduce.runs.averaging import average_run, dev_perplexity
from transduce.runs.extension import extended_run
from transduce.runs.lock import run_lock
from transduce.runs.new_recipe import NewRecipe, new_recipe
from transduce.runs.own_text import OwnText
from transduce.runs.run import RunResult, train
from transduce.runs.run_file import CHECKPOINTS, holds_run, read_run_config, resume_config
from transduce.runs.tuning_recipe import tuning_recipe

__all__ = [
    "CHECKPOINTS", "NewRecipe", "OwnText", "RunResult", "average_run", "dev_perplexity", "extended_run", "holds_run",
    "new_recipe", "read_run_config", "resume_config", "run_lock", "train", "tuning_recipe",
]  # fmt: skip
