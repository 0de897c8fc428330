"""PPO and REINFORCE where all can be enumerated: few symbols, few steps, a policy that is a table.

Their gradient, averaged over all responses, is that of the expected reward; the long form: they reach its optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from small_stores import write_responses
from transduce.config import AlignmentConfig, TrainingConfig
from transduce.data import open_store
from transduce.data.responses import PromptBatch, PromptBatches
from transduce.preferences import policies
from transduce.preferences.policies import PPO, PolicyObjective, Reinforce
from transduce.preferences.rewards import token_rewards
from transduce.text import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS, byte_tokenizer
from transduce.training import Trainer

SYMBOLS = [len(SPECIAL_TOKENS) + n for n in range(4)]
N_IDS = len(SPECIAL_TOKENS) + len(SYMBOLS)
MAX_STEPS = 4
PROMPT = SYMBOLS[0]
BETA, UNFINISHED = 0.3, -1.0
BLOCKED = [id for id in range(len(SPECIAL_TOKENS)) if id != EOS_ID]
CHOICES = [EOS_ID, *SYMBOLS]


def finished_and_cut() -> list[tuple[int, ...]]:
    """All responses: up to 4 tokens, the last one EOS unless it was cut."""
    ended = [(*body, EOS_ID) for n in range(MAX_STEPS) for body in product(SYMBOLS, repeat=n)]
    return [*ended, *product(SYMBOLS, repeat=MAX_STEPS)]


RESPONSES = finished_and_cut()


class Prefixes(list[list[int]]):
    """The decoding state of a table: the ids of each row."""

    def select(self, rows_X1: Tensor) -> Prefixes:
        return Prefixes(self[row] for row in rows_X1.flatten().tolist())


class Table(nn.Module):
    """A policy and value function with a row for each prefix of a response."""

    window = None

    def __init__(self, seed: int) -> None:
        super().__init__()
        prefixes = [prefix for n in range(MAX_STEPS) for prefix in product(CHOICES, repeat=n)]
        self.row_of = {prefix: row for row, prefix in enumerate(prefixes)}
        generator = torch.Generator().manual_seed(seed)
        logits = torch.randn(len(prefixes), N_IDS, generator=generator)
        self.table = nn.Parameter(torch.cat([logits, torch.zeros(len(prefixes), 1)], dim=1))
        self.output = SimpleNamespace(logits=lambda states_ND: states_ND[:, :N_IDS], weight=self.table)
        self.value: Any = SimpleNamespace(scalars=lambda ids_BT: self(ids_BT)[:, N_IDS])

    def __deepcopy__(self, memo: Any) -> Table:
        copy = Table(0).to(self.table.dtype)
        copy.table.data.copy_(self.table.data)
        return copy

    def canonical(self) -> dict[str, nn.Parameter]:
        return {"table": self.table}

    def rows(self, ids: Sequence[int]) -> list[int]:
        """The rows of the states at each position of BOS, prompt, response; those before the response are the first."""
        response = ids[2:]
        return [0, *(self.row_of.get(tuple(response[:n]), 0) for n in range(len(response) + 1))][: len(ids)]

    def forward(self, ids_BT: Tensor) -> Tensor:
        real = [[id for id in row if id != PAD_ID] for row in ids_BT.tolist()]
        return self.table[[row for ids in real for row in self.rows(ids)]]

    def start(self, n_rows: int) -> Prefixes:
        return Prefixes([] for _ in range(n_rows))

    def extend(self, ids_NT: Tensor, state: Prefixes, n_new_N: Any = None) -> tuple[Tensor, Prefixes]:
        state = Prefixes([*before, *new] for before, new in zip(state, ids_NT.tolist(), strict=True))
        states_ND = self.table[[self.rows(ids)[-1] for ids in state]]
        return states_ND[:, None, :N_IDS].expand(-1, ids_NT.shape[1], -1), state

    def step(self, ids_N: Tensor, state: Prefixes) -> tuple[Tensor, Prefixes]:
        logits_N1V, state = self.extend(ids_N.unsqueeze(1), state)
        return logits_N1V.squeeze(1), state

    def log_probs(self) -> Tensor:
        """The log-probability of every response."""
        is_blocked = torch.zeros(N_IDS, dtype=torch.bool).index_fill(0, torch.tensor(BLOCKED), True)
        log_probs = self.table[:, :N_IDS].double().masked_fill(is_blocked, -math.inf).log_softmax(dim=1)
        return torch.stack(
            [sum(log_probs[self.row_of[response[:n]], id] for n, id in enumerate(response)) for response in RESPONSES]
        )


def score(response: Sequence[int]) -> float:
    """An arbitrary reward between 0 and 1.5 of a finished response."""
    return 0.5 * (sum((n + 1) * id for n, id in enumerate(response)) % 7) / 2 / 2


SCORES = torch.tensor([score(each) if each[-1] == EOS_ID else UNFINISHED for each in RESPONSES], dtype=torch.float64)


def objective_of(log_probs: Tensor, reference: Tensor) -> Tensor:
    """E[score] - beta KL, exactly."""
    return (log_probs.exp() * (SCORES - BETA * (log_probs - reference))).sum()


def share_of_optimum(
    kind: type[PolicyObjective], seed: int, folder: Path, config: AlignmentConfig, *, max_updates: int, lr: float
) -> float:
    """Train a table; return how much of the way from the reference to the optimum it has gone."""
    write_responses(folder / "store", [([PROMPT], [[]])], byte_tokenizer())
    model = Table(seed)
    reference = model.log_probs().detach()
    optimum = BETA * float(torch.logsumexp(reference + SCORES / BETA, dim=0))
    training = TrainingConfig(
        max_updates=max_updates, seed=seed, eps_ls=0.0, adam_beta2=0.99, checkpoint_every_updates=max_updates,
        log_every_updates=10**6,
    )  # fmt: skip
    objective = kind(
        model,
        lambda prompts, responses: torch.tensor([score(each) for each in responses]),
        config,
        seed=seed,
        blocked_ids=BLOCKED,
    )
    batches = PromptBatches(
        open_store(folder / "store"),
        rollout_size=config.rollout_size,
        batch_size=config.batch_size,
        n_passes=config.n_passes,
        n_samples=config.n_samples,
        seed=seed,
    )
    Trainer(
        model=model,
        objective=objective,
        batches=batches,
        learning_rate=lambda step: lr * (1 - (step - 1) / max_updates),
        config=training,
        checkpoints=folder / "checkpoints",
    ).run()
    start = float(objective_of(reference, reference))
    return (float(objective_of(model.log_probs().detach(), reference)) - start) / (optimum - start)


PPO_CONFIG = AlignmentConfig(
    beta=BETA, rollout_size=256, batch_size=128, n_passes=2, max_response=MAX_STEPS, unfinished_score=UNFINISHED,
    gae_lambda=1.0, value_weight=1.0, clip_value=1.0,
)  # fmt: skip
REINFORCE_CONFIG = PPO_CONFIG.model_copy(update={"batch_size": 256, "n_passes": 1, "n_samples": 256})


def ppo(seed: int, folder: Path) -> float:
    return share_of_optimum(PPO, seed, folder, PPO_CONFIG, max_updates=480, lr=0.05)


def reinforce(seed: int, folder: Path) -> float:
    return share_of_optimum(Reinforce, seed, folder, REINFORCE_CONFIG, max_updates=240, lr=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("train", [ppo, reinforce])
def test_the_optimum_is_reached(train: Callable[[int, Path], float], seed: int, tmp_path: Path) -> None:
    assert 0.99 <= train(seed, tmp_path) <= 1


def flipped_penalty(scores_B: Tensor, log_ratios_BT: Tensor, mask_BT: Tensor, *, beta: float) -> Tensor:
    return token_rewards(scores_B, log_ratios_BT, mask_BT, beta=-beta)


def score_at_the_first_token(scores_B: Tensor, log_ratios_BT: Tensor, mask_BT: Tensor, *, beta: float) -> Tensor:
    rewards_BT = -beta * log_ratios_BT * mask_BT
    rewards_BT[:, 0] += scores_B
    return rewards_BT


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [flipped_penalty, score_at_the_first_token])
def test_wrong_rewards_miss_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Callable[..., Tensor]) -> None:
    monkeypatch.setattr(policies, "token_rewards", wrong)
    assert ppo(1, tmp_path) < 0.9


def gradients(kind: type[PolicyObjective], monkeypatch: pytest.MonkeyPatch) -> tuple[Tensor, Tensor]:
    """The gradient of the loss of a rollout that has every response as often as is expected; that of the expectation.

    The probabilities are eighths, so that a rollout of 8 to the power of 4 responses has each of them exactly.
    """
    model = Table(3).double()
    config = PPO_CONFIG if kind is PPO else REINFORCE_CONFIG
    rate = lambda prompts, responses: torch.tensor([score(each) for each in responses], dtype=torch.float64)  # noqa: E731
    objective = kind(model, rate, config, seed=1, blocked_ids=BLOCKED)
    reference, generator = model.log_probs().detach(), torch.Generator().manual_seed(1)
    with torch.no_grad():  # another policy than the reference, with values of some size
        for row in model.table:
            row[CHOICES] = torch.tensor([1.0, 1, 1, 2, 3], dtype=torch.float64)[
                torch.randperm(5, generator=generator)
            ].log()
        model.table[:, N_IDS] = torch.randn(len(model.table), generator=generator, dtype=torch.float64)
    counts = (model.log_probs().exp() * 8**MAX_STEPS).round().int().tolist()
    rollout = [list(each) for each, count in zip(RESPONSES, counts, strict=True) for _ in range(count)]
    n = len(rollout)
    assert (n, min(counts)) == (8**MAX_STEPS, 1)
    objective.config = config.model_copy(update={"n_samples": n})
    monkeypatch.setattr(policies, "sample_responses", lambda *arguments, **options: rollout)
    loss = objective(PromptBatch(0, [[BOS_ID, PROMPT]] * n, list(range(n))))
    (of_loss,) = torch.autograd.grad(loss.loss_nats / n, model.table)
    (expected,) = torch.autograd.grad(objective_of(model.log_probs(), reference), model.table)
    return of_loss[:, :N_IDS], expected[:, :N_IDS]


def test_the_gradient_of_reinforce_is_that_of_the_expected_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    of_loss, expected = gradients(Reinforce, monkeypatch)
    n = 8**MAX_STEPS
    torch.testing.assert_close(-of_loss, expected * n / (n - 1))  # the baseline leaves one out


def test_the_first_gradient_of_ppo_is_that_of_the_expected_reward_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whitened advantages scale it; their mean and the values change nothing."""
    of_loss, expected = gradients(PPO, monkeypatch)
    factor = float((of_loss * expected).sum() / expected.square().sum())
    assert factor < -0.1
    torch.testing.assert_close(of_loss, factor * expected)


@pytest.mark.parametrize("wrong", [flipped_penalty, score_at_the_first_token])
def test_wrong_rewards_have_another_gradient(monkeypatch: pytest.MonkeyPatch, wrong: Callable[..., Tensor]) -> None:
    monkeypatch.setattr(policies, "token_rewards", wrong)
    of_loss, expected = gradients(PPO, monkeypatch)
    assert float(torch.cosine_similarity(-of_loss.flatten(), expected.flatten(), dim=0)) < 0.99


def test_ppo_goes_most_of_the_way(tmp_path: Path) -> None:
    assert 0.9 <= share_of_optimum(PPO, 1, tmp_path, PPO_CONFIG, max_updates=80, lr=0.1) <= 1


def test_the_enumeration_is_whole() -> None:
    assert BOS_ID not in CHOICES
    for seed in (1, 2):
        assert float(Table(seed).log_probs().detach().exp().sum()) == pytest.approx(1.0)
