"""Objectives on rankings of responses: the reward model, and direct preference optimisation (DPO).

All pairs of a ranking are one training example: the loss is their mean, so that a prompt with many responses does not
count for more. Ouyang et al. (2022), section 3.5.

Shapes: J responses of a ranking, P pairs; B sequences (responses) of a batch, R tokens of the longest one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from typing import Any, Self

import torch
from torch import Tensor, nn

from transduce.data.responses import RankingBatch
from transduce.errors import CheckpointError
from transduce.inference.language_models.rollouts import sample_responses
from transduce.inference.language_models.sequences import policy_outputs, rewards_of, sequences_of
from transduce.loss import LossSum
from transduce.preferences.losses import centring_losses, dpo_losses, pairs_of_ranking, ranking_losses
from transduce.preferences.measures import Measures
from transduce.training.gradients import hash_seed

__all__ = ["DirectPreference", "PreferenceObjective", "RewardObjective", "frozen_copy", "load_into", "saved_copy"]

ROWS = 64  # responses that are drawn at once


class PreferenceObjective(ABC):
    """The mean loss over the pairs of each ranking, summed over rankings.

    Measures the accuracy, the share of pairs in the right order, and the margin, the mean difference of their rewards.
    """

    beta: float = 1.0  # the reward is beta times the score

    def __init__(self, model: nn.Module) -> None:
        self.model: Any = model
        self._measures = Measures()

    def __call__(self, batch: RankingBatch, update: int = 0) -> LossSum:
        """Return the loss of one batch; its number of tokens is that of its rankings."""
        of_rankings = torch.split(self.scores(batch), batch.sizes)
        margins_P = torch.cat([self.margins(scores_J.detach()) for scores_J in of_rankings])
        self._measures.add(accuracy=margins_P > 0, margin=margins_P)
        losses = [self.pair_losses(scores_J).mean() for scores_J in of_rankings]
        loss = torch.stack(losses).sum()
        return LossSum(loss, loss.detach(), len(losses))

    def of(self, model: nn.Module) -> Self:
        """Return the objective of another model, with nothing measured."""
        other = copy(self)
        other.model, other._measures = model, Measures()
        return other

    def margins(self, scores_J: Tensor) -> Tensor:
        """Return the reward of the better response minus that of the worse one, of the pairs of one ranking, (P,)."""
        better_P, worse_P = pairs_of_ranking(len(scores_J), scores_J.device)
        return self.beta * (scores_J[better_P] - scores_J[worse_P])

    def measured(self) -> dict[str, tuple[float, float]]:
        """Return sum and number of the values of each measure since the last call."""
        return self._measures.taken()

    def state(self) -> dict[str, Tensor]:
        """Return the open measurements."""
        return self._measures.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Load a result of ``state``."""
        self._measures.load_state(state)

    @abstractmethod
    def scores(self, batch: RankingBatch) -> Tensor:
        """Return the score of each response of each ranking, (B,); the better one should have the larger."""

    @abstractmethod
    def pair_losses(self, scores_J: Tensor) -> Tensor:
        """Return the losses of the pairs of one ranking, (P,)."""


class RewardObjective(PreferenceObjective):
    """Binary classification of pairs by the difference of their rewards. Ouyang et al. (2022), equation 1."""

    def __init__(self, model: nn.Module, *, centring: float = 0.0) -> None:
        super().__init__(model)
        self.centring = centring

    def scores(self, batch: RankingBatch) -> Tensor:
        """Return the rewards, (B,)."""
        return rewards_of(self.model, batch.prompts, batch.responses)

    def pair_losses(self, scores_J: Tensor) -> Tensor:
        """Return - log sigmoid of the differences, plus the weighted squares of the sums, (P,)."""
        losses_P = ranking_losses(scores_J)
        return losses_P + self.centring * centring_losses(scores_J) if self.centring else losses_P


class DirectPreference(PreferenceObjective):
    """The policy as its own reward model, relative to a reference. Rafailov et al. (2023), equation 7.

    The reference is the model at the start of the run; checkpoints keep it.
    """

    def __init__(self, model: nn.Module, *, beta: float, blocked_ids: Sequence[int]) -> None:
        super().__init__(model)
        self.beta, self.blocked_ids = beta, list(blocked_ids)
        self.reference = frozen_copy(model)

    def scores(self, batch: RankingBatch) -> Tensor:
        """Return log(pi / pi_ref) of each response, (B,)."""
        return self._log_ratios(batch.prompts, batch.responses)

    @torch.no_grad()
    def divergence(self, prompts: Sequence[Sequence[int]], *, max_tokens: int, seed: int) -> float:
        """Estimate KL(policy || reference) in nats of a response, from a response of the policy to each prompt."""
        total = 0.0
        for begin in range(0, len(prompts), ROWS):
            batch, generator = prompts[begin : begin + ROWS], torch.Generator().manual_seed(hash_seed(seed, begin))
            responses = sample_responses(
                self.model,
                batch,
                max_tokens=max_tokens,
                temperature=1.0,
                blocked_ids=self.blocked_ids,
                generator=generator,
            )
            total += float(self._log_ratios(batch, responses).sum())
        return total / len(prompts)

    def _log_ratios(self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]]) -> Tensor:
        device = next(self.model.parameters()).device
        sequences = sequences_of(prompts, responses, device)

        def log_probs(model: Any) -> Tensor:
            outputs = policy_outputs(model, sequences, temperature=1.0, blocked_ids=self.blocked_ids)
            return outputs.log_probs_BR.sum(dim=1)

        with torch.no_grad():
            reference_B = log_probs(self.reference)
        return log_probs(self.model) - reference_B

    def pair_losses(self, scores_J: Tensor) -> Tensor:
        """Return the losses of the pairs, (P,)."""
        return dpo_losses(scores_J, beta=self.beta)

    def state(self) -> dict[str, Tensor]:
        """Return the weights of the reference, and the open measurements."""
        return saved_copy("reference", self.reference) | self.changing_state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Load a result of ``state``. Raises CheckpointError if the reference does not fit."""
        load_into("reference", self.reference, state)
        self.load_changing_state(state)

    def changing_state(self) -> dict[str, Tensor]:
        """Return the open measurements."""
        return super().state()

    def load_changing_state(self, state: Mapping[str, Tensor]) -> None:
        """Load a result of ``changing_state``."""
        super().load_state(state)


def frozen_copy(model: nn.Module) -> Any:
    """Return a copy of a model that is not trained, without dropout."""
    return deepcopy(model).requires_grad_(False).eval()


def saved_copy(name: str, model: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a model under a common name, for ``load_into``."""
    return {f"{name}.{key}": weight for key, weight in _weights(model).items()}


@torch.no_grad()
def load_into(name: str, model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load the result of ``saved_copy``. Raises CheckpointError if a weight is missing or has another shape."""
    for key, weight in _weights(model).items():
        saved = state.get(f"{name}.{key}")
        if saved is None or saved.shape != weight.shape:
            got = "none" if saved is None else tuple(saved.shape)
            raise CheckpointError(
                f"the state of the objective should have {name}.{key} {tuple(weight.shape)}, got {got}"
            )
        weight.copy_(saved)


def _weights(model: Any) -> Mapping[str, Tensor]:
    canonical: Callable[[], Mapping[str, Tensor]] = model.canonical
    return canonical()
