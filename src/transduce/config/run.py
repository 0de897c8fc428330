"""A whole run: one record for each of its parts."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from transduce.config.data import DataConfig
from transduce.config.model import AnyModelConfig, TransformerConfig
from transduce.config.record import Record
from transduce.config.search import AnySearchConfig, BeamSearchConfig
from transduce.config.training import TrainingConfig

__all__ = ["RunConfig"]


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
