"""Using models: what is loaded from a model folder, and what it does. Neither tasks nor training are needed.

``folder.py`` reads and writes model folders; ``engine.py`` is what computes, whatever it is. Above them is what users
call: ``translation/``, ``language_models/``, parsers, readers of images and audio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.config.decoding import DecodingOptions, LoadingOptions, greedy_unless_sampled, sampling_like
    from transduce.inference.folder import WEIGHTS_FILE, read_model_folder, read_saved_weights
    from transduce.inference.language_models.language_model import (
        Continuation,
        FilledText,
        LanguageModel,
        SpanFill,
        TextScore,
    )
    from transduce.inference.language_models.pixels import PixelModel
    from transduce.inference.language_models.responses import ResponseModel, RewardModel, best_of_n, encode_prompt
    from transduce.inference.language_models.rollouts import sample_responses
    from transduce.inference.language_models.sequences import policy_outputs, rewards_of, sequences_of
    from transduce.inference.loading import load
    from transduce.inference.media_model import FoundText, MediaModel, Reader, Transcriber
    from transduce.inference.parser import Parse, Parser, tagged_words
    from transduce.inference.translation.best_of_samples import (
        BestOfSamples,
        drawn_segments,
        rewards_of_translations,
        seeds_of_draws,
    )
    from transduce.inference.translation.calibration import reliability_of_tokens
    from transduce.inference.translation.distillation import DistilledCounts, distilled_pairs
    from transduce.inference.translation.document_files import translate_document
    from transduce.inference.translation.document_translation import (
        DocumentReport,
        DocumentTranslation,
        Remark,
        TranslatedDocument,
    )
    from transduce.inference.translation.evaluation import Evaluation, evaluate
    from transduce.inference.translation.forced_scores import ForcedScore, forced_scores, log_probabilities
    from transduce.inference.translation.parts import ScoredText, Translation
    from transduce.inference.translation.ranked_translations import RankedCounts, ranked_translations
    from transduce.inference.translation.reranking import Reranker
    from transduce.inference.translation.translator import Translator

__all__ = [
    "WEIGHTS_FILE", "BestOfSamples", "Continuation", "DecodingOptions", "DistilledCounts", "DocumentReport",
    "DocumentTranslation", "Evaluation", "FilledText", "ForcedScore", "FoundText", "LanguageModel", "LoadingOptions",
    "MediaModel", "Parse", "Parser", "PixelModel", "RankedCounts", "Reader", "Remark", "Reranker", "ResponseModel",
    "RewardModel", "ScoredText", "SpanFill", "TextScore", "Transcriber", "TranslatedDocument", "Translation",
    "Translator", "best_of_n", "distilled_pairs", "drawn_segments", "encode_prompt", "evaluate", "forced_scores",
    "greedy_unless_sampled", "load", "log_probabilities", "policy_outputs", "ranked_translations", "read_model_folder",
    "read_saved_weights", "reliability_of_tokens", "rewards_of", "rewards_of_translations", "sample_responses",
    "sampling_like", "seeds_of_draws", "sequences_of", "tagged_words", "translate_document",
]  # fmt: skip

imported_on_use(__name__)
