"""Supervised fine-tuning (SFT): a language model learns ideal responses; only they count in the loss."""

from __future__ import annotations

import torch
from torch import nn

from transduce.config import RunConfig
from transduce.data import Store
from transduce.data.documents import TextBatch
from transduce.data.responses import ResponseBatches
from transduce.tasks.documents.text_task import TextObjective, text_objective
from transduce.tasks.prompts.response_task import PolicyTask
from transduce.tasks.registry import register

__all__ = ["SupervisedFineTuning"]


class SupervisedFineTuning(PolicyTask[TextBatch]):
    """Cross-entropy of the best response to each prompt. Ouyang et al. (2022), section 3.5."""

    name = "sft"

    def batches(self, store: Store, config: RunConfig, device: torch.device) -> ResponseBatches:
        """Return batches of prompts with their best response."""
        self.require_window(store, config)
        return ResponseBatches(store, **self.batch_options(config, device))

    def objective(self, model: nn.Module, config: RunConfig) -> TextObjective:
        """Return the cross-entropy of the responses."""
        return text_objective(model, config.training)


register(SupervisedFineTuning())
