"""The configuration of a run."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from transduce.config.alignment import AlignmentConfig
from transduce.config.data import AnyDataConfig
from transduce.config.model import AnyModelConfig, EncoderDecoderConfig, TransformerConfig
from transduce.config.pairs import ParallelData
from transduce.config.record import Record
from transduce.config.search import AnySearchConfig, BeamSearchConfig
from transduce.config.task_settings import require_read, task_settings
from transduce.config.training import TrainingConfig

__all__ = ["RunConfig"]


class RunConfig(Record):
    """The configuration of a run: the input of ``transduce train``, stored in ``run.json``."""

    model: AnyModelConfig = TransformerConfig()
    data: AnyDataConfig = ParallelData()
    training: TrainingConfig = TrainingConfig()
    search: AnySearchConfig = BeamSearchConfig()
    alignment: AlignmentConfig = AlignmentConfig()

    @model_validator(mode="after")
    def _settings_fit_the_task(self) -> Self:
        task = task_settings(self.data.task)
        task.settings.of(self.data)
        require_read("training", self.training, task)
        require_read("alignment", self.alignment, task)
        task.require_fit(self)
        return self

    @model_validator(mode="after")
    def _vocabularies_fit(self) -> Self:
        is_shared = self.data.shared_vocabulary
        if isinstance(self.model, EncoderDecoderConfig) and self.model.embeddings == "three-way" and not is_shared:
            raise ValueError("three-way embeddings need shared_vocabulary = true; or choose embeddings = 'target'")
        return self
