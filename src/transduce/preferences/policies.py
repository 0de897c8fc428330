"""Objectives on the policy's own responses: proximal policy optimisation (PPO), and REINFORCE.

A rollout is made when its first batch arrives: the policy answers the prompts, a reward model rates the responses, and
the reference gives the penalty for leaving it. Then all batches of the rollout train the policy on these responses.
Everything that is drawn follows from the seed and the number of the rollout; checkpoints hold the rollout, so that a
run can stop and resume within it.

Dropout is off while responses are drawn and while the policy is trained on them, so that the ratio of both policies is
1 before the first update. Huang et al. (2024).

Shapes: B sequences (responses), R tokens of the longest response; P prompts, J responses to each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from transduce.config import AlignmentConfig
from transduce.data.responses import PromptBatch
from transduce.inference.language_models.rollouts import Rater, sample_responses
from transduce.inference.language_models.sequences import PolicyOutputs, policy_outputs, sequences_of
from transduce.loss import LossSum
from transduce.preferences.advantages import generalised_advantages, leave_one_out_advantages
from transduce.preferences.losses import clipped_policy_loss, clipped_value_loss, reinforce_loss
from transduce.preferences.measures import Measures
from transduce.preferences.rankings import frozen_copy, load_into, saved_copy
from transduce.preferences.rewards import AdaptiveKL, masked_mean, penalise_unfinished, token_rewards, whiten
from transduce.text import EOS_ID
from transduce.training.gradients import hash_seed

__all__ = ["PPO", "Experience", "PolicyObjective", "Reinforce"]

NO_ROLLOUT = -1
STATE = "rollout"  # common name of its tensors in checkpoints


@dataclass(frozen=True, slots=True, eq=False)
class Experience:
    """What a rollout keeps of each response, padded on the right."""

    ids_BR: Tensor  # -1 at padding
    log_probs_BR: Tensor  # of the policy that has drawn them
    advantages_BR: Tensor  # of REINFORCE: that of the response, at every token
    returns_BR: Tensor
    values_BR: Tensor

    def select(self, rows: Sequence[int]) -> Experience:
        """Return some responses, without the padding that none of them needs."""
        ids_BR = self.ids_BR[rows]
        longest = int((ids_BR >= 0).sum(dim=1).max())
        return Experience(*(getattr(self, each.name)[rows][:, :longest] for each in fields(Experience)))

    @property
    def responses(self) -> list[list[int]]:
        """The tokens of each response."""
        return [[id for id in row if id >= 0] for row in self.ids_BR.tolist()]


class PolicyObjective(ABC):
    """Maximise E[score] - beta KL(policy || reference), on responses of the policy itself."""

    def __init__(
        self, model: nn.Module, rate: Rater, config: AlignmentConfig, *, seed: int, blocked_ids: Sequence[int]
    ) -> None:
        """``rate`` scores responses; the reference is the model as it is now; ``blocked_ids`` are never drawn."""
        self.model: Any = model
        self.reference: Any = frozen_copy(model)
        self.reference.value = None  # only its probabilities are used
        self.rate, self.config, self.seed, self.blocked_ids = rate, config, seed, list(blocked_ids)
        self.kl = AdaptiveKL(config.beta, config.target_kl, config.kl_horizon)
        self.experience: Experience | None = None
        self._rollout = NO_ROLLOUT
        self._measures = Measures()

    def __call__(self, batch: PromptBatch, update: int = 0) -> LossSum:
        """Return the loss of one batch, its mean times the number of responses."""
        self.model.eval()  # no dropout
        if batch.rollout != self._rollout:
            self._roll_out(batch)
        assert self.experience is not None
        experience = self.experience.select(batch.rows)
        prompts = [batch.prompts[row] for row in batch.rows]
        outputs, mask_BR = self._outputs(self.model, prompts, experience.responses)
        loss = self.loss(outputs, experience, mask_BR)
        n = len(batch.rows)
        return LossSum(n * loss, -outputs.log_probs_BR.detach().sum(), n)

    @abstractmethod
    def loss(self, outputs: PolicyOutputs, experience: Experience, mask_BR: Tensor) -> Tensor:
        """Return the mean loss of some responses."""

    @abstractmethod
    def experience_of(self, ids_BR: Tensor, outputs: PolicyOutputs, rewards_BR: Tensor, mask_BR: Tensor) -> Experience:
        """Return what a rollout keeps, given the reward of each token."""

    def measured(self) -> dict[str, tuple[float, float]]:
        """Return sum and number of the values of each measure since the last call."""
        return self._measures.taken()

    @torch.no_grad()
    def _roll_out(self, batch: PromptBatch) -> None:
        """Draw a response to each prompt and rate it."""
        config = self.config
        generator = torch.Generator().manual_seed(hash_seed(self.seed, batch.rollout))
        responses = sample_responses(
            self.model,
            batch.prompts,
            max_tokens=config.max_response,
            temperature=config.temperature,
            blocked_ids=self.blocked_ids,
            generator=generator,
        )
        outputs, mask_BR = self._outputs(self.model, batch.prompts, responses)
        of_reference, _ = self._outputs(self.reference, batch.prompts, responses)
        is_finished_B = torch.tensor([response[-1] == EOS_ID for response in responses], device=mask_BR.device)
        scores_B = self.rate(batch.prompts, responses).to(mask_BR.device)
        penalised_B = penalise_unfinished(scores_B, is_finished_B, config.unfinished_score)
        log_ratios_BR = outputs.log_probs_BR - of_reference.log_probs_BR
        rewards_BR = token_rewards(penalised_B, log_ratios_BR, mask_BR, beta=self.kl.beta)
        ids_BR = torch.full(mask_BR.shape, -1, device=mask_BR.device)
        ids_BR[mask_BR] = torch.tensor([id for each in responses for id in each], device=mask_BR.device)
        self.experience = self.experience_of(ids_BR, outputs, rewards_BR, mask_BR)
        kl = float(log_ratios_BR.sum(dim=1).mean())
        self._measures.add(
            score=float(scores_B.mean()),
            reward=float(rewards_BR.sum(dim=1).mean()),
            kl=kl,
            beta=self.kl.beta,
            length=float(mask_BR.sum(dim=1).float().mean()),
            finished=float(is_finished_B.float().mean()),
            entropy=float(masked_mean(outputs.entropies_BR, mask_BR)),
        )
        self.kl = self.kl.after(kl, len(responses))
        self._rollout = batch.rollout

    def _outputs(
        self, model: Any, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]]
    ) -> tuple[PolicyOutputs, Tensor]:
        """Return what a model says about the responses, and the mask of their tokens."""
        sequences = sequences_of(prompts, responses, next(self.model.parameters()).device)
        outputs = policy_outputs(model, sequences, temperature=self.config.temperature, blocked_ids=self.blocked_ids)
        return outputs, sequences.mask_BR

    def state(self) -> dict[str, Tensor]:
        """Return the weights of the reference, and what changes."""
        return saved_copy("reference", self.reference) | self.changing_state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Load a result of ``state``. Raises CheckpointError if the reference does not fit."""
        load_into("reference", self.reference, state)
        self.load_changing_state(state)

    def changing_state(self) -> dict[str, Tensor]:
        """Return the current rollout, the coefficient of the penalty and the open measurements."""
        state = {
            "beta": torch.tensor(self.kl.beta, dtype=torch.float64),
            "rollout_number": torch.tensor(self._rollout),
        }
        if self.experience is not None:
            state |= {f"{STATE}.{each.name}": getattr(self.experience, each.name) for each in fields(Experience)}
        return state | self._measures.state()

    def load_changing_state(self, state: Mapping[str, Tensor]) -> None:
        """Load a result of ``changing_state``."""
        self.kl = replace(self.kl, beta=float(state["beta"]))
        self._rollout = int(state["rollout_number"])
        device = next(self.model.parameters()).device
        self.experience = None
        if self._rollout != NO_ROLLOUT:
            self.experience = Experience(*(state[f"{STATE}.{each.name}"].to(device) for each in fields(Experience)))
        self._measures.load_state(state)


class PPO(PolicyObjective):
    """Proximal policy optimisation. Schulman et al. (2017); Ziegler et al. (2019)."""

    def experience_of(self, ids_BR: Tensor, outputs: PolicyOutputs, rewards_BR: Tensor, mask_BR: Tensor) -> Experience:
        """Return whitened advantages, and the returns that the value function should predict."""
        config, values_BR = self.config, outputs.values_BR
        assert values_BR is not None
        if config.whiten_rewards:
            rewards_BR = whiten(rewards_BR, mask_BR, keeps_mean=True)
        advantages_BR = generalised_advantages(
            rewards_BR, values_BR, mask_BR, gamma=config.gamma, gae_lambda=config.gae_lambda
        )
        returns_BR = advantages_BR + values_BR
        return Experience(ids_BR, outputs.log_probs_BR, whiten(advantages_BR, mask_BR), returns_BR, values_BR)

    def loss(self, outputs: PolicyOutputs, experience: Experience, mask_BR: Tensor) -> Tensor:
        """Return the clipped loss of the policy, plus the weighted one of its value function."""
        config = self.config
        assert outputs.values_BR is not None
        policy_loss, clipped = clipped_policy_loss(
            outputs.log_probs_BR, experience.log_probs_BR, experience.advantages_BR, mask_BR, clip=config.clip_ratio
        )
        value_loss = clipped_value_loss(
            outputs.values_BR, experience.values_BR, experience.returns_BR, mask_BR, clip=config.clip_value
        )
        self._measures.add(
            policy_loss=float(policy_loss.detach()), value_loss=float(value_loss.detach()), clipped=float(clipped)
        )
        return policy_loss + config.value_weight * value_loss


class Reinforce(PolicyObjective):
    """REINFORCE with a leave-one-out baseline: the unbiased gradient. Williams (1992); Ahmadian et al. (2024)."""

    def experience_of(self, ids_BR: Tensor, outputs: PolicyOutputs, rewards_BR: Tensor, mask_BR: Tensor) -> Experience:
        """Return the advantage of each response over the others to its prompt."""
        returns_PJ = rewards_BR.sum(dim=1).view(-1, self.config.n_samples)
        advantages_B1 = leave_one_out_advantages(returns_PJ).view(-1, 1)
        returns_BR, values_BR = torch.zeros_like(rewards_BR), torch.zeros_like(rewards_BR)  # not used
        return Experience(ids_BR, outputs.log_probs_BR, advantages_B1 * mask_BR, returns_BR, values_BR)

    def loss(self, outputs: PolicyOutputs, experience: Experience, mask_BR: Tensor) -> Tensor:
        """Return the loss whose gradient estimates that of the expected return."""
        return reinforce_loss(outputs.log_probs_BR, experience.advantages_BR[:, 0], mask_BR)
