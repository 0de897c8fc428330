"""What can be chosen: frozen, strict records. Names are the paper's.

``RunConfig`` holds one record for each part of a run: model, data, training, search. Defaults are the paper's base
model and its recipe (sections 3, 5 and 6.1); what departs from the paper is a switch that is off.
"""

from __future__ import annotations

from transduce.config.data import DataConfig
from transduce.config.limits import (
    CORPUS_PATTERN,
    DIRECTION_PATTERN,
    LARGEST_ALPHA,
    LARGEST_BEAM,
    LARGEST_SEED,
    LARGEST_VOCABULARY,
    MOST_BATCHES,
    MOST_MINUTES,
    MOST_PAIRS,
    SPLITS,
    InferencePrecision,
    Precision,
    Split,
)
from transduce.config.model import (
    AnyModelConfig,
    ByteNetConfig,
    ConvS2SConfig,
    LastStateConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
)
from transduce.config.record import config_from_mapping, nearest_name
from transduce.config.run import RunConfig
from transduce.config.search import AnySearchConfig, BeamSearchConfig, GreedySearchConfig, SearchConfig
from transduce.config.training import TrainingConfig

__all__ = [
    "CORPUS_PATTERN",
    "DIRECTION_PATTERN",
    "LARGEST_ALPHA",
    "LARGEST_BEAM",
    "LARGEST_SEED",
    "LARGEST_VOCABULARY",
    "MOST_BATCHES",
    "MOST_MINUTES",
    "MOST_PAIRS",
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
]
