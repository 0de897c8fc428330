"""Training a policy on its own responses: proximal policy optimisation (PPO), and REINFORCE."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import nn

from transduce.config import AlignmentConfig, RunConfig
from transduce.data import Store
from transduce.data.responses import PromptBatch, PromptBatches, longest_prompt
from transduce.errors import ConfigError
from transduce.inference.folder import read_model_folder, read_tokenizers
from transduce.inference.language_models.responses import RewardModel
from transduce.inference.language_models.sequences import rewards_of
from transduce.model import RewardLM, ValuedLM
from transduce.preferences.policies import PPO, PolicyObjective, Reinforce
from transduce.tasks.preparation import Preparation
from transduce.tasks.prepared import Prepared
from transduce.tasks.prompts.response_task import PolicyTask, ResponsePreparation, blocked_ids, window_of
from transduce.tasks.registry import register

__all__ = ["PolicyOptimisation", "ReinforceTask"]


_OF_POLICIES = frozenset(
    f"alignment.{name}" for name in ("beta", "max_response", "reward_model", "target_kl", "kl_horizon", "rollout_size",
    "batch_size", "n_samples", "temperature", "unfinished_score")
)  # fmt: skip


class PolicyOptimisation(PolicyTask[PromptBatch]):
    """PPO against a reward model, held near the model that the run starts from. Ouyang et al. (2022), equation 2."""

    name = "ppo"
    counted_noun = "responses"
    reads = _OF_POLICIES | {
        f"alignment.{name}" for name in ("n_passes", "gamma", "gae_lambda", "clip_ratio", "clip_value", "value_weight",
        "whiten_rewards")
    }  # fmt: skip
    preparation: ClassVar[type[Preparation[Any, Any]]] = ResponsePreparation
    is_parallel = False
    own_model: ClassVar[Mapping[str, str]] = {"output": "tokens-and-value"}
    objective_class: ClassVar[type[PolicyObjective]] = PPO

    def start_model(self, model: nn.Module, prepared: Prepared, config: RunConfig) -> None:
        """Start the value function from the reward model."""
        assert isinstance(model, ValuedLM)
        model.start_value(_reward_model_for(model, config.alignment))

    def batches(self, store: Store, config: RunConfig, device: torch.device) -> PromptBatches:
        """Return the prompts of each rollout, and the parts of it that the policy is trained on.

        Raises ConfigError if settings do not fit each other or the reward model.
        """
        alignment = config.alignment
        self.require_window(store, config)
        self.require_room(store, config)
        folder = _reward_folder(alignment)
        if read_tokenizers(folder).fingerprint != store.summary.tokenizer_fingerprint:
            raise ConfigError(f"{folder} has another tokenizer than this run; train both --from the same model")
        return PromptBatches(
            store,
            rollout_size=alignment.rollout_size,
            batch_size=alignment.batch_size,
            n_passes=self.n_passes(alignment),
            n_samples=alignment.n_samples,
            seed=config.training.seed,
        )

    def require_room(self, store: Store, config: RunConfig) -> None:
        """Raise ConfigError if the longest prompt with the longest response does not fit into the model's window."""
        window, longest = window_of(config), longest_prompt(store)
        if longest + config.alignment.max_response > window:
            raise ConfigError(
                f"the longest prompt has {longest:,} tokens, BOS included; with alignment.max_response ="
                f" {config.alignment.max_response:,} it does not fit into the window of the model, model.n_positions ="
                f" {window:,}; lower max_response, or leave out long prompts by data.max_length"
            )

    def n_passes(self, alignment: AlignmentConfig) -> int:
        """Return how often each response is trained on."""
        return alignment.n_passes

    def objective(self, model: nn.Module, config: RunConfig) -> PolicyObjective:
        """Return the objective, which draws the responses and has the reward model rate them."""
        reward_model = _reward_model_for(model, config.alignment)
        return self.objective_class(
            model,
            lambda prompts, responses: rewards_of(reward_model, prompts, responses),
            config.alignment,
            seed=config.training.seed,
            blocked_ids=blocked_ids(config.model),
        )


class ReinforceTask(PolicyOptimisation):
    """REINFORCE with a leave-one-out baseline, on the same rewards. Ahmadian et al. (2024)."""

    name = "reinforce"
    reads = _OF_POLICIES
    own_model: ClassVar[Mapping[str, str]] = {}
    objective_class: ClassVar[type[PolicyObjective]] = Reinforce

    def start_model(self, model: nn.Module, prepared: Prepared, config: RunConfig) -> None:
        """Change nothing."""

    def n_passes(self, alignment: AlignmentConfig) -> int:
        """Return 1: the gradient is unbiased for responses of the current policy only.

        Raises ConfigError for a single response to each prompt, which has no baseline, or several batches of a rollout.
        """
        if alignment.n_samples < 2:
            raise ConfigError(f"task = 'reinforce' needs alignment.n_samples of at least 2, got {alignment.n_samples}")
        if alignment.batch_size != alignment.rollout_size:
            raise ConfigError(
                f"task = 'reinforce' makes one update of a rollout: alignment.batch_size = {alignment.batch_size}"
                f" should be rollout_size = {alignment.rollout_size}"
            )
        return 1


def _reward_folder(alignment: AlignmentConfig) -> Path:
    """Return the folder of the reward model. Raises ConfigError if none is named."""
    if alignment.reward_model is None:
        raise ConfigError("alignment.reward_model should name the folder of a reward model (task = 'reward')")
    return Path(alignment.reward_model)


# By the policy that they rate: a model is read once, and goes with its policy.
_REWARD_MODELS: WeakKeyDictionary[nn.Module, RewardLM] = WeakKeyDictionary()


def _reward_model_for(policy: nn.Module, alignment: AlignmentConfig) -> RewardLM:
    """Return the reward model of a configuration, on the policy's device."""
    if policy not in _REWARD_MODELS:
        loaded = read_model_folder(_reward_folder(alignment), device=next(policy.parameters()).device)
        model: RewardLM = RewardModel.class_for(loaded).from_folder(loaded).model
        _REWARD_MODELS[policy] = model.requires_grad_(False).eval()
    return _REWARD_MODELS[policy]


register(PolicyOptimisation())
register(ReinforceTask())
