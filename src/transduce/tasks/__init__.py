"""Tasks (data, model, objective, search, metric); runs, prepared and model folders."""

from __future__ import annotations

from transduce.tasks.average import average_run, dev_perplexity
from transduce.tasks.best_of_samples import BestOfSamples, drawn_segments, rewards_of_translations, seeds_of_draws
from transduce.tasks.causal_lm import CausalLanguageModelling as _CausalLanguageModelling  # noqa: F401  (it registers itself)
from transduce.tasks.distillation import DistilledCounts, distilled_pairs
from transduce.tasks.dpo import DirectPreferenceOptimisation as _DPO  # noqa: F401  (likewise)
from transduce.tasks.evaluation import Evaluation, evaluate
from transduce.tasks.forced_scores import ForcedScore, forced_scores, log_probabilities
from transduce.tasks.language_model import Continuation, FilledText, LanguageModel, SpanFill, TextScore
from transduce.tasks.mask_predict import MaskPredict as _MaskPredict  # noqa: F401  (likewise)
from transduce.tasks.masked_lm import MaskedLanguageModelling as _MaskedLanguageModelling  # noqa: F401  (likewise)
from transduce.tasks.media_model import FoundText, MediaModel, Reader, Transcriber
from transduce.tasks.media_task import MediaTask as _MediaTask  # noqa: F401  (its tasks register themselves)
from transduce.tasks.model_folder import WEIGHTS_FILE, read_model_folder, read_saved_weights
from transduce.tasks.new_recipe import NewRecipe, OwnText, new_recipe
from transduce.tasks.parser import Parse, Parser, tagged_words
from transduce.tasks.parsing import ParsingScores, evaluate_parser
from transduce.tasks.pixel_model import PixelModel
from transduce.tasks.pixels import PixelTask as _PixelTask  # noqa: F401  (it registers itself)
from transduce.tasks.ppo import PolicyOptimisation as _PPO  # noqa: F401  (likewise)
from transduce.tasks.preparation import Prepared, new_prepared, open_prepared, prepare
from transduce.tasks.ranked_translations import RankedCounts, ranked_translations
from transduce.tasks.registry import TASKS, register, task_named, task_of
from transduce.tasks.reranking import Reranker
from transduce.tasks.response_model import ResponseModel, RewardModel, best_of_n, encode_prompt
from transduce.tasks.reward import RewardModelling as _RewardModelling  # noqa: F401  (it registers itself)
from transduce.tasks.run import RunResult, train
from transduce.tasks.run_file import CHECKPOINTS, holds_run, read_run_config, resume_config
from transduce.tasks.run_lock import run_lock
from transduce.tasks.sft import SupervisedFineTuning as _SupervisedFineTuning  # noqa: F401  (it registers itself)
from transduce.tasks.shortlists import write_shortlist
from transduce.tasks.span_corruption import SpanCorruption as _SpanCorruption  # noqa: F401  (it registers itself)
from transduce.tasks.task import Task
from transduce.tasks.translation import Translation as _Translation  # noqa: F401  (it registers itself)
from transduce.tasks.translation_parts import ScoredText, Translation
from transduce.tasks.translator import Translator, greedy_unless_sampled, sampling_like

__all__ = [
    "CHECKPOINTS", "TASKS", "WEIGHTS_FILE", "BestOfSamples", "Continuation", "DistilledCounts", "Evaluation",
    "FilledText", "ForcedScore", "FoundText", "LanguageModel", "MediaModel", "NewRecipe", "OwnText", "Parse", "Parser",
    "ParsingScores", "PixelModel", "Prepared", "RankedCounts", "Reader", "Reranker", "ResponseModel", "RewardModel",
    "RunResult", "ScoredText", "SpanFill", "Task", "TextScore", "Transcriber", "Translation", "Translator",
    "average_run", "best_of_n", "dev_perplexity", "distilled_pairs", "drawn_segments", "encode_prompt", "evaluate",
    "evaluate_parser", "forced_scores", "greedy_unless_sampled", "holds_run", "log_probabilities", "new_prepared", "new_recipe",
    "open_prepared", "prepare", "ranked_translations", "read_model_folder", "read_run_config", "read_saved_weights",
    "register", "resume_config", "rewards_of_translations", "run_lock", "sampling_like", "seeds_of_draws",
    "tagged_words", "task_named", "task_of", "train", "write_shortlist",
]  # fmt: skip
