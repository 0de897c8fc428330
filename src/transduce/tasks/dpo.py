"""Direct preference optimisation (DPO): learning from rankings without a reward model. Rafailov et al. (2023)."""

from __future__ import annotations

from torch import nn

from transduce.alignment.preferences import DirectPreference
from transduce.config import RunConfig
from transduce.data.responses import RankingBatch
from transduce.tasks.registry import register
from transduce.tasks.response_task import PolicyTask, blocked_ids
from transduce.tasks.reward import RankingTask

__all__ = ["DirectPreferenceOptimisation"]


class DirectPreferenceOptimisation(RankingTask, PolicyTask[RankingBatch]):
    """The policy is its own reward model, relative to the model that the run starts from."""

    name = "dpo"

    def objective(self, model: nn.Module, config: RunConfig) -> DirectPreference:
        """Return the loss of all pairs of a ranking."""
        return DirectPreference(model, beta=config.alignment.beta, blocked_ids=blocked_ids(config.model))


register(DirectPreferenceOptimisation())
