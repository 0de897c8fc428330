"""Each formula of alignment against float64 NumPy, written as the sources print it; mutated ones are noticed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from transduce.config import TrainingConfig
from transduce.preferences.advantages import generalised_advantages, leave_one_out_advantages
from transduce.preferences.losses import (
    centring_losses,
    clipped_policy_loss,
    clipped_value_loss,
    dpo_losses,
    ranking_losses,
    reinforce_loss,
)
from transduce.preferences.rankings import RewardObjective
from transduce.preferences.rewards import AdaptiveKL, penalise_unfinished, token_rewards, whiten
from transduce.training.optimiser import make_optimiser, tensorflow_eps

Array = NDArray[Any]
SEEDS = st.integers(0, 10**6)


def batch(seed: int, n: int) -> tuple[list[Tensor], Tensor, list[int]]:
    """n random (B, T) tensors in float64, a mask and the lengths."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 6, size=int(random.integers(1, 5))).tolist()
    shape = len(lengths), max(lengths)
    mask_BT = torch.arange(shape[1]) < torch.tensor(lengths).unsqueeze(1)
    return [torch.from_numpy(random.normal(size=shape)) for _ in range(n)], mask_BT, lengths


@given(seed=SEEDS, beta=st.floats(0, 2))
def test_token_rewards(seed: int, beta: float) -> None:
    (ratios, scores), mask_BT, lengths = batch(seed, 2)
    scores_B = scores[:, 0]
    rewards_BT = token_rewards(scores_B, ratios, mask_BT, beta=beta)
    for row, length in enumerate(lengths):
        expected = [-beta * float(ratios[row, t]) for t in range(length)]
        expected[-1] += float(scores_B[row])
        assert rewards_BT[row, :length].tolist() == pytest.approx(expected, abs=1e-12)
        assert not rewards_BT[row, length:].any()


@given(seed=SEEDS, gamma=st.floats(0, 1), gae_lambda=st.floats(0, 1))
def test_generalised_advantages(seed: int, gamma: float, gae_lambda: float) -> None:
    (rewards, values), mask_BT, lengths = batch(seed, 2)
    got = generalised_advantages(rewards * mask_BT, values, mask_BT, gamma=gamma, gae_lambda=gae_lambda)
    for row, length in enumerate(lengths):
        r, v = rewards[row, :length].numpy(), np.append(values[row, :length].numpy(), 0.0)
        delta = r + gamma * v[1:] - v[:-1]
        expected = [sum((gamma * gae_lambda) ** k * delta[t + k] for k in range(length - t)) for t in range(length)]
        assert got[row, :length].tolist() == pytest.approx(expected, abs=1e-9)
        assert not got[row, length:].any()


@given(seed=SEEDS, keeps_mean=st.booleans())
def test_whitening(seed: int, keeps_mean: bool) -> None:
    (values,), mask_BT, lengths = batch(seed, 1)
    if sum(lengths) < 2:
        return
    flat = values[mask_BT].numpy()
    expected = (flat - flat.mean()) / np.sqrt(flat.var() + 1e-8) + (flat.mean() if keeps_mean else 0.0)
    assert whiten(values, mask_BT, keeps_mean=keeps_mean)[mask_BT].tolist() == pytest.approx(
        expected.tolist(), abs=1e-9
    )


@given(seed=SEEDS)
def test_rankings_and_direct_preferences(seed: int) -> None:
    random = np.random.default_rng(seed)
    rewards = random.normal(size=random.integers(2, 6))
    expected = [np.log1p(np.exp(-(rewards[i] - rewards[j]))) for i, j in combinations(range(len(rewards)), 2)]
    assert ranking_losses(torch.from_numpy(rewards)).tolist() == pytest.approx(expected, abs=1e-9)
    sums = [(rewards[i] + rewards[j]) ** 2 for i, j in combinations(range(len(rewards)), 2)]
    assert centring_losses(torch.from_numpy(rewards)).tolist() == pytest.approx(sums, abs=1e-9)
    objective = RewardObjective(torch.nn.Identity(), centring=0.25)
    both = [loss + 0.25 * square for loss, square in zip(expected, sums, strict=True)]
    assert objective.pair_losses(torch.from_numpy(rewards)).tolist() == pytest.approx(both, abs=1e-9)
    policy, reference = random.normal(size=(2, len(rewards)))
    beta = 0.3
    expected = [
        np.log1p(np.exp(-beta * ((policy[i] - reference[i]) - (policy[j] - reference[j]))))
        for i, j in combinations(range(len(rewards)), 2)
    ]
    assert dpo_losses(torch.from_numpy(policy - reference), beta=beta).tolist() == pytest.approx(expected, abs=1e-9)


def policy_loss_reference(new: Array, old: Array, advantages: Array, mask: Array, clip: float) -> float:
    rho = np.exp(new - old)
    surrogate = np.minimum(rho * advantages, np.clip(rho, 1 - clip, 1 + clip) * advantages)
    return float(-surrogate[mask].mean())


def value_loss_reference(new: Array, old: Array, returns: Array, mask: Array, clip: float) -> float:
    clipped = old + np.clip(new - old, -clip, clip)
    return float(0.5 * np.maximum((new - returns) ** 2, (clipped - returns) ** 2)[mask].mean())


def check_policy_loss(loss: Callable[..., Any], seed: int) -> None:
    (new, old, advantages), mask_BT, _ = batch(seed, 3)
    got, share = loss(new, old, advantages, mask_BT, clip=0.2)
    arrays = (each.numpy() for each in (new, old, advantages, mask_BT))
    assert float(got) == pytest.approx(policy_loss_reference(*arrays, clip=0.2), abs=1e-9)  # type: ignore[misc]
    assert 0 <= float(share) <= 1


def check_value_loss(loss: Callable[..., Tensor], seed: int) -> None:
    (new, old, returns), mask_BT, _ = batch(seed, 3)
    got = loss(new, old, returns, mask_BT, clip=0.2)
    arrays = (each.numpy() for each in (new, old, returns, mask_BT))
    assert float(got) == pytest.approx(value_loss_reference(*arrays, clip=0.2), abs=1e-9)  # type: ignore[misc]


@given(seed=SEEDS)
def test_clipped_losses(seed: int) -> None:
    check_policy_loss(clipped_policy_loss, seed)
    check_value_loss(clipped_value_loss, seed)


def fails(check: Callable[..., None], loss: Callable[..., Any], seed: int) -> bool:
    try:
        check(loss, seed)
    except AssertionError:
        return True
    return False


def value_clipped_around_the_return(
    new: Tensor, old: Tensor, returns: Tensor, mask_BT: Tensor, *, clip: float
) -> Tensor:
    return clipped_value_loss(new, returns, returns, mask_BT, clip=clip)


def value_of_the_smaller_error(new: Tensor, old: Tensor, returns: Tensor, mask_BT: Tensor, *, clip: float) -> Tensor:
    clipped = torch.clamp(new, old - clip, old + clip)
    errors = torch.minimum((new - returns).square(), (clipped - returns).square())
    return 0.5 * errors[mask_BT].mean()


def value_without_clip(new: Tensor, old: Tensor, returns: Tensor, mask_BT: Tensor, *, clip: float) -> Tensor:
    return 0.5 * (new - returns).square()[mask_BT].mean()


def policy_of_the_larger(new: Tensor, old: Tensor, advantages: Tensor, mask_BT: Tensor, *, clip: float) -> Any:
    loss, share = clipped_policy_loss(new, old, -advantages, mask_BT, clip=clip)
    return -loss, share


@pytest.mark.parametrize("mutated", [value_clipped_around_the_return, value_of_the_smaller_error, value_without_clip])
def test_a_value_clip_at_the_wrong_place_is_noticed(mutated: Callable[..., Tensor]) -> None:
    assert any(fails(check_value_loss, mutated, seed) for seed in range(20))


def test_a_policy_clip_on_the_wrong_side_is_noticed() -> None:
    assert any(fails(check_policy_loss, policy_of_the_larger, seed) for seed in range(20))


def test_the_ratio_is_one_for_the_policy_that_drew_the_response() -> None:
    """Then the loss is minus the mean advantage, its gradient that of REINFORCE, and nothing is clipped."""
    (log_probs, advantages), mask_BT, _ = batch(3, 2)
    log_probs.requires_grad_()
    loss, share = clipped_policy_loss(log_probs, log_probs.detach(), advantages, mask_BT, clip=0.2)
    assert float(loss.detach()) == pytest.approx(-float(advantages[mask_BT].mean()), abs=1e-12)
    assert float(share) == 0
    (gradient_BT,) = torch.autograd.grad(loss, log_probs)
    torch.testing.assert_close(gradient_BT, -advantages * mask_BT / mask_BT.sum())


def test_reinforce_and_its_baseline() -> None:
    returns_PJ = torch.tensor([[1.0, 3.0], [0.0, 8.0]])
    assert leave_one_out_advantages(returns_PJ).tolist() == [[-2, 2], [-8, 8]]
    log_probs_BT = torch.tensor([[-1.0, -2.0], [-3.0, -9.0]])
    mask_BT = torch.tensor([[True, True], [True, False]])
    assert float(reinforce_loss(log_probs_BT, torch.tensor([1.0, -2.0]), mask_BT)) == -(1 * -3.0 + -2 * -3.0) / 2


def test_adaptive_coefficient() -> None:
    start = AdaptiveKL(0.15, target=6.0, horizon=10_000)
    assert start.after(6.0, 64).beta == 0.15
    assert start.after(6.6, 100).beta == pytest.approx(0.15 * (1 + 0.1 * 100 / 10_000))
    assert start.after(600.0, 100).beta == pytest.approx(0.15 * (1 + 0.2 * 100 / 10_000))  # the error is clipped
    assert start.after(0.0, 100).beta == pytest.approx(0.15 * (1 - 0.2 * 100 / 10_000))
    assert AdaptiveKL(0.15, target=None, horizon=10_000).after(600.0, 100).beta == 0.15
    assert AdaptiveKL(0.15, target=6.0, horizon=50).after(0.0, 256).beta == pytest.approx(0.15 * 0.8)  # never negative


def test_responses_without_an_end_have_a_fixed_score() -> None:
    scores_B = penalise_unfinished(torch.tensor([0.5, 0.7]), torch.tensor([True, False]), -3.0)
    assert scores_B.tolist() == [0.5, -3.0]


def test_adam_with_epsilon_where_tensorflow_adds_it() -> None:
    """Against the update of Kingma and Ba (2015), section 2, with epsilon hat, in NumPy."""
    config = TrainingConfig(adam_eps=1e-2, adam_beta1=0.9, adam_beta2=0.98)
    weight = torch.nn.Parameter(torch.tensor([[1.0, -2.0, 0.5]]))
    optimiser = make_optimiser(torch.nn.ParameterList([weight]), config)
    expected, m, v = weight.detach().double().numpy().copy(), np.zeros((1, 3)), np.zeros((1, 3))
    random = np.random.default_rng(0)
    for step in range(1, 6):
        gradient = random.normal(size=(1, 3))
        weight.grad = torch.from_numpy(gradient).float()
        for group in optimiser.param_groups:
            group["lr"], group["eps"] = 0.1, tensorflow_eps(1e-2, 0.98, step)
        optimiser.step()
        m, v = 0.9 * m + 0.1 * gradient, 0.98 * v + 0.02 * gradient**2
        expected -= 0.1 * np.sqrt(1 - 0.98**step) / (1 - 0.9**step) * m / (np.sqrt(v) + 1e-2)
        assert weight.detach().numpy() == pytest.approx(expected, abs=1e-5)
