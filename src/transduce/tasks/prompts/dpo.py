"""Direct preference optimisation (DPO): learning from rankings without a reward model. Rafailov et al. (2023)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from transduce.config import RunConfig
from transduce.data.responses import RankingBatch, RankingBatches, prompt_of
from transduce.preferences.rankings import DirectPreference
from transduce.tasks.prepared import Prepared
from transduce.tasks.prompts.response_task import PolicyTask, blocked_ids
from transduce.tasks.prompts.reward import PAIR_SCORES, RankingTask, margins_of_pairs, scores_of_pairs
from transduce.tasks.registry import register
from transduce.training import DistributedContext, Objective, Score, Validate, Validation

__all__ = ["DirectPreferenceOptimisation"]

EVALUATION_SEED = 0  # of the responses of which the divergence is estimated


class DirectPreferenceOptimisation(RankingTask, PolicyTask[RankingBatch]):
    """The policy is its own reward model, relative to the model that the run starts from."""

    name = "dpo"
    is_shardable = False  # its objective copies the model
    reads = frozenset({"alignment.beta", "alignment.max_response"})

    def objective(self, model: nn.Module, config: RunConfig) -> DirectPreference:
        """Return the loss of all pairs of a ranking."""
        return DirectPreference(model, beta=config.alignment.beta, blocked_ids=blocked_ids(config.model))

    def validated_scores(self, config: RunConfig) -> tuple[str, ...]:
        """Return the names of the scores of a validation."""
        return *PAIR_SCORES, "kl"

    def with_objective(
        self,
        validate: Validate,
        objective: Objective[RankingBatch],
        model: Callable[[], nn.Module],
        prepared: Prepared,
        config: RunConfig,
        *,
        distributed: DistributedContext,
    ) -> Validate:
        """Return a validation that also compares the policy with the reference."""
        assert isinstance(objective, DirectPreference)
        return _ComparedValidation(validate, lambda: objective.of(model()), prepared, config, distributed)


class _ComparedValidation:
    """A validation, with the scores of the implied rewards on the dev pairs, and KL(policy || reference).

    The divergence, in nats of a response, is estimated from one response of the policy to each of the first prompts.
    """

    def __init__(
        self,
        validate: Validate,
        objective: Callable[[], DirectPreference],
        prepared: Prepared,
        config: RunConfig,
        distributed: DistributedContext,
    ) -> None:
        assert prepared.dev is not None
        self._validate, self._objective, self._distributed = validate, objective, distributed
        self._batches = RankingBatches(prepared.dev, max_tokens=config.training.max_tokens_per_batch, seed=0)
        n_prompts = min(len(prepared.dev), config.training.validation_sentences)
        self._prompts = [prompt_of(prepared.dev, row) for row in range(n_prompts)]
        self._max_tokens = config.alignment.max_response

    def __call__(self, should_stop: Callable[[], bool] = lambda: False) -> Validation | None:
        """Validate once; None, on all ranks, if ``should_stop`` interrupted any of them."""
        validation = self._validate(should_stop)
        if validation is None or self._distributed.all_gather(torch.tensor([float(should_stop())])).any():
            return None
        objective = self._objective()
        scores = scores_of_pairs(margins_of_pairs(objective, self._batches))
        kl = objective.divergence(self._prompts, max_tokens=self._max_tokens, seed=EVALUATION_SEED)
        return replace(validation, scores={**scores, "kl": Score(kl, lower_is_better=True)})


register(DirectPreferenceOptimisation())
