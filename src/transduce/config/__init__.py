"""What can be chosen: frozen, strict records. Names are the paper's.

``RunConfig`` holds one record for each part of a run: model, data, training, search. Defaults are the paper's base
model and its recipe (sections 3, 5 and 6.1); what departs from the paper is a switch that is off.
"""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from transduce.config.data import CORPUS_PATTERN, DIRECTION_PATTERN, MAX_PAIRS, SPLITS, DataConfig, Split
from transduce.config.model import (
    AnyModelConfig,
    ByteNetConfig,
    ConvS2SConfig,
    LastStateConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
)
from transduce.config.record import MAX_SEED, MAX_VOCABULARY_SIZE, Record, config_from_mapping, nearest_name
from transduce.config.search import (
    MAX_ALPHA,
    MAX_BEAM_SIZE,
    AnySearchConfig,
    BeamSearchConfig,
    GreedySearchConfig,
    InferencePrecision,
    SearchConfig,
)
from transduce.config.training import MAX_BATCHES, MAX_MINUTES, Precision, TrainingConfig

__all__ = [
    "CORPUS_PATTERN",
    "DIRECTION_PATTERN",
    "MAX_ALPHA",
    "MAX_BATCHES",
    "MAX_BEAM_SIZE",
    "MAX_MINUTES",
    "MAX_PAIRS",
    "MAX_SEED",
    "MAX_VOCABULARY_SIZE",
    "SPLITS",
    "AnyModelConfig",
    "AnySearchConfig",
    "BeamSearchConfig",
    "ByteNetConfig",
    "ConvS2SConfig",
    "DataConfig",
    "GreedySearchConfig",
    "InferencePrecision",
    "LastStateConfig",
    "ModelConfig",
    "Precision",
    "RecurrentConfig",
    "RunConfig",
    "SearchConfig",
    "Split",
    "TrainingConfig",
    "TransformerConfig",
    "config_from_mapping",
    "nearest_name",
]  # fmt: skip


class RunConfig(Record):
    """A whole run: what ``transduce train`` is given and ``run.json`` holds."""

    model: AnyModelConfig = TransformerConfig()
    data: DataConfig = DataConfig()
    training: TrainingConfig = TrainingConfig()
    search: AnySearchConfig = BeamSearchConfig()

    @model_validator(mode="after")
    def _vocabularies_fit(self) -> Self:
        if self.model.embeddings == "three-way" and not self.data.shared_vocabulary:
            raise ValueError("three-way embeddings need shared_vocabulary = true; or choose embeddings = 'target'")
        if self.training.both_ways_epochs and not self.data.shared_vocabulary:
            raise ValueError("both_ways_epochs needs shared_vocabulary = true: each language stands on either side")
        if self.training.both_ways_epochs and (self.data.bpe_dropout or set(self.data.weights.values()) != {1.0}):
            # Which way a row is read follows from the number of the epoch, so that each must read every row once.
            raise ValueError("both_ways_epochs goes without bpe_dropout, and with corpora of weight 1.0 only")
        return self
