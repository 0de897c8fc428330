"""Language models with further outputs: the value function and the reward."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from transduce.config import LanguageModelConfig
from transduce.model import RewardLM, TransformerLM, ValuedLM, cost_of, make_model
from transduce.tasks import task_named

CONFIG = LanguageModelConfig(n_layers=1, d_model=64, d_ff=32, n_heads=2, d_k=8, d_v=8, vocab_size=50, n_positions=16)
IDS_BT = torch.tensor([[1, 7, 8], [1, 9, 0]])


def test_the_value_function_changes_no_weight_of_the_policy() -> None:
    torch.manual_seed(0)
    plain = TransformerLM.from_config(CONFIG)
    torch.manual_seed(0)
    valued = ValuedLM.from_config(CONFIG)
    for name, weight in plain.canonical().items():
        assert torch.equal(weight, valued.canonical()[name]), name
    of_value = set(valued.canonical()) - set(plain.canonical())
    assert of_value == {f"value.{name}" for name in RewardLM.from_config(CONFIG).canonical()}
    valued.value.scalars(IDS_BT).sum().backward()
    assert all(weight.grad is None for name, weight in valued.canonical().items() if not name.startswith("value."))


def test_the_value_function_starts_from_the_reward_model() -> None:
    valued, reward_model = ValuedLM.from_config(CONFIG).eval(), RewardLM.from_config(CONFIG).eval()
    valued.start_value(reward_model)
    assert torch.equal(valued.value.scalars(IDS_BT), reward_model.scalars(IDS_BT))


def test_a_reward_model_of_another_shape_leaves_a_value_function_of_zero() -> None:
    valued = ValuedLM.from_config(CONFIG).eval()
    valued.start_value(RewardLM.from_config(CONFIG.model_copy(update={"n_layers": 2})))
    assert not valued.value.scalars(IDS_BT).any()
    torch.testing.assert_close(valued.value(IDS_BT), valued(IDS_BT))


def test_the_reward_output_has_its_deviation() -> None:
    torch.manual_seed(0)
    wide = CONFIG.model_copy(update={"d_model": 4096})
    weight = RewardLM.from_config(wide).output.linear.weight
    assert float(weight.detach().std()) == pytest.approx(1 / math.sqrt(4097), rel=0.05)


def test_rewards_are_normalised_in_the_weights() -> None:
    torch.manual_seed(0)
    model = RewardLM.from_config(CONFIG).eval()
    before_B = model.output.logits(model(IDS_BT)).detach()
    model.normalise(before_B)
    after_B = model.output.logits(model(IDS_BT)).detach()
    assert float(after_B.mean()) == pytest.approx(0, abs=1e-5)
    assert float(after_B.std(correction=0)) == pytest.approx(1, abs=1e-4)
    order = before_B.argsort()
    assert all(low <= high for low, high in pairwise(after_B[order].tolist()))


@pytest.mark.parametrize("task", ["sft", "reward", "dpo", "ppo", "reinforce"])
@pytest.mark.parametrize("tied", [True, False])
def test_costs_count_the_weights(task: str, tied: bool) -> None:
    config = CONFIG.model_copy(update={"tied_embeddings": tied, "output_bias": True})
    config = task_named(task).model_config(config, 50, 50)
    model = make_model(config)
    assert cost_of(config).parameters == sum(weight.numel() for weight in model.parameters())
