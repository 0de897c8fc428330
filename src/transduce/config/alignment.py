"""Alignment: settings of reward models, of DPO and of training on a policy's own responses."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from transduce.config.record import Count, FileName, Record

Coefficient = Annotated[float, Field(ge=0.0, le=1000.0)]
Positive = Annotated[float, Field(gt=0.0, le=10**6)]
UnitInterval = Annotated[float, Field(ge=0.0, le=1.0)]
Score = Annotated[float, Field(ge=-(10**6), le=10**6)]


class AlignmentConfig(Record):
    """Settings of tasks that learn preferences. The reference is the model that the run starts from."""

    centring: Coefficient = 0.0  # reward model: how strongly the rewards of a pair are drawn towards a sum of 0
    reward_model: FileName | None = None  # a folder of a reward model, which rates the policy's responses
    beta: Coefficient = 0.1  # of the KL penalty towards the reference; of DPO
    target_kl: Positive | None = None  # nats of a response: beta adapts to keep this divergence; default: beta is fixed
    kl_horizon: Count = 10_000  # responses: how slowly beta adapts
    rollout_size: Count = 256  # responses that are drawn at once
    batch_size: Count = 64  # responses of an update
    n_passes: Count = 4  # PPO: how often each response is trained on
    n_samples: Count = 1  # responses to each prompt of a rollout; REINFORCE needs at least 2
    max_response: Count = 64  # tokens of a response
    temperature: Positive = 1.0  # of drawing responses
    unfinished_score: Score = -1.0  # the score of a response without an end, whatever the reward model says
    gamma: UnitInterval = 1.0  # discount of later rewards
    gae_lambda: UnitInterval = 0.95  # generalised advantage estimation
    clip_ratio: UnitInterval = 0.2  # PPO: by how far the probability of a token may change and still be rewarded
    clip_value: Positive = 0.2  # PPO: likewise for the value function
    value_weight: Coefficient = 0.1  # PPO: of the loss of the value function
    whiten_rewards: bool = False  # PPO: divide the rewards of a rollout by their standard deviation
