"""Where the core meets a purpose. A task is data, an objective, a search and a metric; the first is translation."""

from __future__ import annotations

from transduce.tasks.evaluation import Evaluation, dev_perplexity, evaluate
from transduce.tasks.new_recipe import NewRecipe, OwnText, new_recipe
from transduce.tasks.parser import Parse, Parser, tagged_words
from transduce.tasks.parsing import ParsingScores, evaluate_parser
from transduce.tasks.preparation import Prepared, open_prepared, prepare
from transduce.tasks.reranking import Reranker, log_probabilities
from transduce.tasks.run import RunResult, average_run, read_run_config, resume_config, scores_of, task_of, train
from transduce.tasks.translation_parts import ScoredText, Translation
from transduce.tasks.translator import Translator

__all__ = [
    "Evaluation",
    "NewRecipe",
    "OwnText",
    "Parse",
    "Parser",
    "ParsingScores",
    "Prepared",
    "Reranker",
    "RunResult",
    "ScoredText",
    "Translation",
    "Translator",
    "average_run",
    "dev_perplexity",
    "evaluate",
    "evaluate_parser",
    "log_probabilities",
    "new_recipe",
    "open_prepared",
    "prepare",
    "read_run_config",
    "resume_config",
    "scores_of",
    "tagged_words",
    "task_of",
    "train",
]
