"""Prompts with responses as tensors, and what a policy says about each token of the responses.

Shapes: B sequences (responses), T positions of prompt and response, N real positions (tokens) of all responses, R
tokens of the longest response, D d_model, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from transduce.data import pad_rows
from transduce.model.output import VocabularyOutput

__all__ = [
    "Policy", "PolicyOutputs", "Sequences", "log_probs_of", "policy_outputs", "rewards_of", "sequences_of",
]  # fmt: skip


class Policy(Protocol):
    """A causal language model."""

    output: VocabularyOutput

    def __call__(self, ids_BT: Tensor) -> Tensor:
        """Return the states at the real positions of all rows, (N, D)."""


class ValueFunction(Protocol):
    """A scalar for each position."""

    def scalars(self, ids_BT: Tensor) -> Tensor:
        """Return the scalars at the real positions of all rows, (N,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """Prompts with responses, as a causal language model reads them."""

    ids_BT: Tensor  # prompt, and the response without its last token; padded on the right
    positions_N: Tensor  # of the states that predict the tokens of the responses, among the real positions of all rows
    targets_N: Tensor  # the tokens of the responses
    mask_BR: Tensor  # real tokens of each response

    def padded(self, values_N: Tensor) -> Tensor:
        """Return a value of each token as (B, R), with 0 at padding."""
        return values_N.new_zeros(self.mask_BR.shape).masked_scatter(self.mask_BR, values_N)


def sequences_of(
    prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]], device: torch.device | str = "cpu"
) -> Sequences:
    """Return prompts (with BOS) and their responses (with EOS, if they have an end) as tensors.

    >>> sequences = sequences_of([[1, 7], [1]], [[8, 2], [9, 9, 2]])
    >>> sequences.ids_BT.tolist(), sequences.positions_N.tolist(), sequences.targets_N.tolist()
    ([[1, 7, 8], [1, 9, 9]], [1, 2, 3, 4, 5], [8, 2, 9, 9, 2])
    """
    inputs = [[*prompt, *response[:-1]] for prompt, response in zip(prompts, responses, strict=True)]
    positions: list[int] = []
    n_before = 0
    for prompt, ids in zip(prompts, inputs, strict=True):
        positions += range(n_before + len(prompt) - 1, n_before + len(ids))
        n_before += len(ids)
    lengths_B = torch.tensor([len(response) for response in responses])
    mask_BR = torch.arange(int(lengths_B.max())) < lengths_B.unsqueeze(1)
    targets = [id for response in responses for id in response]
    positions_N, targets_N = (torch.tensor(each, device=device) for each in (positions, targets))
    return Sequences(pad_rows(inputs).to(device), positions_N, targets_N, mask_BR.to(device))


def log_probs_of(logits_NV: Tensor, *, temperature: float, blocked_ids: Sequence[int]) -> Tensor:
    """Return the log-probabilities of the policy, (N, V): of softmax(logits / temperature) without some tokens.

    The same distribution is sampled from and trained, so that the ratio of both is exact. Huang et al. (2024).
    """
    logits_NV = logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32)) / temperature
    if blocked_ids:
        logits_NV = logits_NV.index_fill(1, torch.tensor(blocked_ids, device=logits_NV.device), -math.inf)
    return logits_NV.log_softmax(dim=1)


@dataclass(frozen=True, slots=True, eq=False)
class PolicyOutputs:
    """What a policy says about the tokens of some responses, each (B, R), with 0 at padding."""

    log_probs_BR: Tensor
    entropies_BR: Tensor  # of the distribution of each token, nats
    values_BR: Tensor | None  # None: a policy without an estimate


def policy_outputs(
    model: Policy, sequences: Sequences, *, temperature: float, blocked_ids: Sequence[int]
) -> PolicyOutputs:
    """Return the log-probability of each token of the responses, the entropy there, and the estimated return."""
    states_ND = model(sequences.ids_BT).index_select(0, sequences.positions_N)
    log_probs_NV = log_probs_of(model.output.logits(states_ND), temperature=temperature, blocked_ids=blocked_ids)
    chosen_N = log_probs_NV.gather(1, sequences.targets_N.unsqueeze(1)).squeeze(1)
    entropies_N = torch.special.entr(log_probs_NV.detach().exp()).sum(dim=1)
    value: ValueFunction | None = getattr(model, "value", None)
    values_BR = None
    if value is not None:
        values_N = value.scalars(sequences.ids_BT).index_select(0, sequences.positions_N)
        values_BR = sequences.padded(values_N.float())
    return PolicyOutputs(sequences.padded(chosen_N), sequences.padded(entropies_N), values_BR)


def rewards_of(model: Any, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]]) -> Tensor:
    """Return the rewards that a reward model gives at the last token of each response, (B,)."""
    device = next(model.parameters()).device
    rows = [[*prompt, *response] for prompt, response in zip(prompts, responses, strict=True)]
    states_ND: Tensor = model(pad_rows(rows).to(device))
    ends_B = torch.tensor([len(row) for row in rows], device=device).cumsum(dim=0) - 1
    rewards_B: Tensor = model.output.logits(states_ND.index_select(0, ends_B)).float()
    return rewards_B
