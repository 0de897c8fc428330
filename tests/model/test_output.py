"""Output layers: each loss against its formula."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from transduce.loss import LossConfig, r_drop_reference
from transduce.model import LinearOutput, MultiHeadOutput, ScalarOutput, TiedOutput
from transduce.model.embedding import TokenEmbedding


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(1)


@pytest.mark.parametrize("output", [TiedOutput(TokenEmbedding(9, 4)), LinearOutput(4, 9)], ids=["tied", "linear"])
def test_a_matrix_has_smoothed_cross_entropy_and_r_drop(output: TiedOutput | LinearOutput) -> None:
    output = output.double()
    states, targets = torch.randn(5, 4).double(), torch.randint(9, (5,))
    assert torch.equal(output.logits(states), states @ output.weight.T)
    loss = output.loss(states, targets, LossConfig(eps_ls=0.1))
    expected = F.cross_entropy(output.logits(states), targets, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close((loss.loss_nats, loss.total_nats), (expected, expected))
    both = torch.stack((states, states + 0.1))
    got = output.loss(both, targets, LossConfig(eps_ls=0.1, r_drop=2.0)).loss_nats
    wanted = r_drop_reference(both, output.weight, targets, eps_ls=0.1, smoothing="uniform", alpha=2.0).loss_nats
    torch.testing.assert_close(got, wanted)


def test_heads_predict_several_tokens_ahead_and_the_first_is_the_plain_output() -> None:
    plain = TiedOutput(TokenEmbedding(9, 4))
    output = MultiHeadOutput(plain, 4, n_heads=3).double()
    states = torch.randn(4, 4).double()
    logits = output.logits(states)
    assert logits.shape == (4, 3, 9)
    torch.testing.assert_close(logits[:, 0], plain.logits(states))
    targets = torch.tensor([[5, 6, 7], [6, 7, 2], [7, 2, 0], [2, 0, 0]])  # no target after EOS
    loss = output.loss(states, targets)
    expected = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0, reduction="sum")
    torch.testing.assert_close(loss.loss_nats, expected)
    assert loss.n_tokens == 9
    loss.loss_nats.backward()
    assert all(weight.grad is not None for weight in output.parameters())


def test_a_scalar_has_squared_error() -> None:
    output = ScalarOutput(4).double()
    states, targets = torch.randn(5, 4).double(), torch.randn(5).double()
    values = states @ output.linear.weight[0] + output.linear.bias
    torch.testing.assert_close(output.logits(states), values)
    loss = output.loss(states, targets)
    torch.testing.assert_close(loss.loss_nats, ((values - targets) ** 2).sum() / 2)
    assert loss.n_tokens == 5
