"""The configuration of a run: frozen, strict records with the paper's names.

``RunConfig`` has one record for each part of a run: model, data, training, search, alignment. The defaults are the
paper's base model and its recipe (sections 3, 5 and 6.1); everything that deviates from the paper is off by default.

The tables model and search choose their record by what the file says they are, the table data by the task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.config.alignment import AlignmentConfig
    from transduce.config.data import CORPUS_PATTERN, MAX_PAIRS, MEDIA_CORPORA, SPLITS, AnyDataConfig, DataConfig, Split
    from transduce.config.directions import (
        DIRECTION_PATTERN,
        LANGUAGE_PATTERN,
        base_language,
        canonical_code,
        canonical_direction,
        split_direction,
    )
    from transduce.config.documents import DocumentsData, FirstItems, SegmentsData
    from transduce.config.media import ImagesData, MediaData, Noise, SpeechData
    from transduce.config.migrations import config_of_format_1, tables_of_format_3
    from transduce.config.model import (
        AnyModelConfig,
        ByteNetConfig,
        ConvS2SConfig,
        EncoderDecoderConfig,
        LanguageModelConfig,
        LastStateConfig,
        ModelConfig,
        RecurrentConfig,
        TransformerConfig,
    )
    from transduce.config.pairs import PairsData, ParallelCorpora, ParallelData, TreesData
    from transduce.config.prompts import PromptsData
    from transduce.config.record import MAX_MINUTES, MAX_SEED, MAX_VOCABULARY_SIZE, config_from_mapping, nearest_name
    from transduce.config.run import RunConfig
    from transduce.config.search import (
        MAX_ALPHA,
        MAX_BEAM_SIZE,
        MAX_ITERATIONS,
        MIN_DRAFT_PROBABILITY,
        N_DRAFTED,
        AnySearchConfig,
        BeamSearchConfig,
        GreedySearchConfig,
        InferencePrecision,
        MaskPredictSearchConfig,
        SampledSearchConfig,
        SearchConfig,
        TextFormat,
        Wanted,
    )
    from transduce.config.task_settings import TaskSettings, without_unread
    from transduce.config.training import MAX_BATCHES, Precision, TrainingConfig

__all__ = [
    "CORPUS_PATTERN", "DIRECTION_PATTERN", "LANGUAGE_PATTERN", "MAX_ALPHA", "MAX_BATCHES", "MAX_BEAM_SIZE",
    "MAX_ITERATIONS", "MAX_MINUTES", "MAX_PAIRS", "MAX_SEED", "MAX_VOCABULARY_SIZE", "MEDIA_CORPORA",
    "MIN_DRAFT_PROBABILITY", "N_DRAFTED", "SPLITS", "AlignmentConfig", "AnyDataConfig", "AnyModelConfig",
    "AnySearchConfig", "BeamSearchConfig", "ByteNetConfig", "ConvS2SConfig", "DataConfig", "DocumentsData",
    "EncoderDecoderConfig", "FirstItems", "GreedySearchConfig", "ImagesData", "InferencePrecision",
    "LanguageModelConfig", "LastStateConfig", "MaskPredictSearchConfig", "MediaData", "ModelConfig", "Noise",
    "PairsData", "ParallelCorpora", "ParallelData", "Precision", "PromptsData", "RecurrentConfig", "RunConfig",
    "SampledSearchConfig", "SearchConfig", "SegmentsData", "SpeechData", "Split", "TaskSettings", "TextFormat",
    "TrainingConfig", "TransformerConfig", "TreesData", "Wanted", "base_language", "canonical_code",
    "canonical_direction", "config_from_mapping", "config_of_format_1", "nearest_name", "split_direction",
    "tables_of_format_3", "without_unread",
]  # fmt: skip

imported_on_use(__name__)
