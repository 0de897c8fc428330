"""The configuration of a run: frozen, strict records with the paper's names.

``RunConfig`` has one record for each part of a run: model, data, training, search, alignment. The defaults are the
paper's base model and its recipe (sections 3, 5 and 6.1); everything that deviates from the paper is off by default.
"""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from transduce.config.alignment import AlignmentConfig
from transduce.config.data import CORPUS_PATTERN, MAX_PAIRS, MEDIA_CORPORA, SPLITS, DataConfig, Noise, Split
from transduce.config.directions import (
    DIRECTION_PATTERN,
    LANGUAGE_PATTERN,
    base_language,
    canonical_code,
    canonical_direction,
    split_direction,
)
from transduce.config.migrations import config_of_format_1
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
from transduce.config.record import MAX_SEED, MAX_VOCABULARY_SIZE, Record, config_from_mapping, nearest_name
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
)
from transduce.config.task_settings import ALIGNMENT_TASKS, MEDIA_TASKS, require_read, without_unread
from transduce.config.training import MAX_BATCHES, MAX_MINUTES, Precision, TrainingConfig

__all__ = [
    "ALIGNMENT_TASKS", "CORPUS_PATTERN", "DIRECTION_PATTERN", "LANGUAGE_PATTERN", "MAX_ALPHA", "MAX_BATCHES",
    "MAX_BEAM_SIZE", "MAX_ITERATIONS", "MAX_MINUTES", "MAX_PAIRS", "MAX_SEED", "MAX_VOCABULARY_SIZE",
    "MEDIA_CORPORA", "MEDIA_TASKS",
    "MIN_DRAFT_PROBABILITY", "N_DRAFTED", "SPLITS", "AlignmentConfig", "AnyModelConfig", "AnySearchConfig",
    "BeamSearchConfig", "ByteNetConfig", "ConvS2SConfig", "DataConfig", "EncoderDecoderConfig", "GreedySearchConfig",
    "InferencePrecision", "LanguageModelConfig", "LastStateConfig", "MaskPredictSearchConfig", "ModelConfig", "Noise",
    "Precision", "RecurrentConfig", "RunConfig", "SampledSearchConfig", "SearchConfig", "Split", "TextFormat",
    "TrainingConfig", "TransformerConfig", "base_language", "canonical_code", "canonical_direction",
    "config_from_mapping", "config_of_format_1", "nearest_name", "split_direction", "without_unread",
]  # fmt: skip


CAUSAL_TASKS = ("causal-lm", "pixels", *ALIGNMENT_TASKS)
TRANSFORMER_TASKS = ("mask-predict", "span-corruption", *MEDIA_TASKS)
WITH_ENCODER = ("translation", "parsing", *TRANSFORMER_TASKS)


class RunConfig(Record):
    """The configuration of a run: the input of ``transduce train``, stored in ``run.json``."""

    model: AnyModelConfig = TransformerConfig()
    data: DataConfig = DataConfig()
    training: TrainingConfig = TrainingConfig()
    search: AnySearchConfig = BeamSearchConfig()
    alignment: AlignmentConfig = AlignmentConfig()

    @model_validator(mode="after")
    def _settings_are_of_the_task(self) -> Self:
        require_read("training", self.training, self.data.task)
        require_read("alignment", self.alignment, self.data.task)
        return self

    @model_validator(mode="after")
    def _model_fits_the_task(self) -> Self:
        task, system = self.data.task, self.model.system
        wanted = {"masked-lm": False}.get(task, True if task in CAUSAL_TASKS else None)  # model.is_causal
        if wanted is None:
            if isinstance(self.model, LanguageModelConfig) and task in WITH_ENCODER:
                raise ValueError(
                    f"task = {task!r} needs an encoder and a decoder, as in model.system = 'transformer', got"
                    " model.system = 'language-model'"
                )
        elif not isinstance(self.model, LanguageModelConfig):
            raise ValueError(f"task = {task!r} needs model.system = 'language-model', got model.system = {system!r}")
        elif self.model.is_causal is not wanted:
            raise ValueError(f"task = {task!r} needs model.is_causal = {str(wanted).lower()}")
        if task == "span-corruption" and not self.data.shared_vocabulary:
            raise ValueError("task = 'span-corruption' needs shared_vocabulary = true: both sides are the same text")
        return self

    @model_validator(mode="after")
    def _source_fits_the_task(self) -> Self:
        data, task = self.data, self.data.task
        wanted = {"image-to-text": "patches", "speech-to-text": "frames"}.get(task, "tokens")
        if not isinstance(self.model, TransformerConfig):
            if task in TRANSFORMER_TASKS:
                raise ValueError(f"task = {task!r} needs model.system = 'transformer', got {self.model.system!r}")
            return self
        if self.model.source != wanted:
            raise ValueError(f"task = {task!r} needs model.source = {wanted!r}, got {self.model.source!r}")
        setting, width = ("n_bands", data.n_bands) if wanted == "frames" else ("image_height", data.image_height)
        if wanted != "tokens" and self.model.source_width != width:
            raise ValueError(
                f"model.source_width should be data.{setting}, got {self.model.source_width} and {width}; set both"
            )
        if wanted != "tokens" and not data.shared_vocabulary:
            raise ValueError(
                f"task = {task!r} has one vocabulary, that of its text; leave out shared_vocabulary = false"
            )
        return self

    @model_validator(mode="after")
    def _search_fits_the_task(self) -> Self:
        if (self.data.task == "mask-predict") != isinstance(self.search, MaskPredictSearchConfig):
            raise ValueError(
                f"task = 'mask-predict' and search.kind = 'mask-predict' go together, got task = {self.data.task!r} and"
                f" search.kind = {self.search.kind!r}"
            )
        if self.data.task == "parsing" and isinstance(self.search, SampledSearchConfig):
            raise ValueError("task = 'parsing' needs search.kind = 'beam' or 'greedy', got search.kind = 'sampling'")
        return self

    @model_validator(mode="after")
    def _vocabularies_fit(self) -> Self:
        if (
            isinstance(self.model, EncoderDecoderConfig)
            and self.model.embeddings == "three-way"
            and not self.data.shared_vocabulary
        ):
            raise ValueError("three-way embeddings need shared_vocabulary = true; or choose embeddings = 'target'")
        if self.training.both_ways_epochs and not self.data.shared_vocabulary:
            raise ValueError("both_ways_epochs needs shared_vocabulary = true: each language is source and target")
        if self.training.both_ways_epochs and (self.data.bpe_dropout or set(self.data.weights.values()) != {1.0}):
            # The direction of a row depends on the epoch number alone, so every epoch must read each row once.
            raise ValueError("both_ways_epochs excludes bpe_dropout, and needs corpora of weight 1.0")
        return self
