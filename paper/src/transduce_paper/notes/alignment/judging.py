"""Judging models of the alignment chapter: by the quality that the reward model has only learnt to guess.

Shapes: B sequences (responses), R tokens of the longest response.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import mean

import torch

from transduce.corpora.grammar import Instruction, generate_instructions, response_quality
from transduce.inference import (
    ResponseModel,
    RewardModel,
    encode_prompt,
    policy_outputs,
    rewards_of,
    sample_responses,
    sequences_of,
)
from transduce.search import Sampling
from transduce.text import BOS_ID, EOS_ID

__all__ = ["Judgement", "best_of_n_kl", "drawn_responses", "judge", "judge_best_of", "test_instructions", "win_rate"]

ROWS_PER_BATCH = 64
MAX_TOKENS = 40
SEED = 1


@dataclass(frozen=True, slots=True)
class Judgement:
    """Measurements of a policy on instructions, each a mean over responses that were drawn at temperature 1."""

    quality: float  # 0 to 1, of the response by its ideal
    exact: float  # share of ideal responses
    greedy_exact: float  # share of ideal ones among the most probable responses
    reward: float  # of the reward model
    kl: float  # from the fine-tuned model, nats of a response
    length: float  # tokens
    wins: float  # share of instructions with a better response than the fine-tuned model's; ties count half


def test_instructions(n: int) -> list[Instruction]:
    """Return held-out instructions."""
    return list(islice(generate_instructions("test", n=n, seed=1), n))


def judge(folder: Path, reference: Path, reward_folder: Path, n: int, device: torch.device) -> Judgement:
    """Draw a response to each of ``n`` held-out instructions and measure it."""
    instructions = test_instructions(n)
    model, start = (ResponseModel.load(each, device=device) for each in (folder, reference))
    rater = RewardModel.load(reward_folder, device=device)
    prompts, responses = _drawn(model, instructions, 1)
    rewards = _rewards(rater, prompts, responses)
    kl = 0.0
    blocked = [id for id in model.no_text if id != EOS_ID]
    with torch.no_grad():
        for begin in range(0, n, ROWS_PER_BATCH):
            part = slice(begin, begin + ROWS_PER_BATCH)
            sequences = sequences_of(prompts[part], responses[part], device)
            ours, theirs = (
                policy_outputs(each.model, sequences, temperature=1.0, blocked_ids=blocked).log_probs_BR
                for each in (model, start)
            )
            kl += float((ours - theirs).double().sum())
    qualities = _qualities(model, instructions, responses)
    of_reference = _qualities(start, instructions, _drawn(start, instructions, 1)[1])
    greedy = model.generate(
        [each.prompt for each in instructions], sampling=Sampling(temperature=0.0), max_tokens=MAX_TOKENS
    )
    pairs = list(zip(greedy, instructions, strict=True))
    return Judgement(
        quality=mean(qualities),
        exact=sum(each == 1.0 for each in qualities) / n,
        greedy_exact=sum(each.text == instruction.response for each, instruction in pairs) / n,
        reward=mean(rewards),
        kl=kl / n,
        length=mean(map(len, responses)),
        wins=win_rate(qualities, of_reference),
    )


def judge_best_of(
    folder: Path, reward_folder: Path, sizes: Sequence[int], n: int, device: torch.device
) -> dict[int, tuple[float, float, float]]:
    """Return mean quality, share of ideal responses and mean reward of the best of n responses, by n."""
    instructions = test_instructions(n)
    model, rater = ResponseModel.load(folder, device=device), RewardModel.load(reward_folder, device=device)
    most = max(sizes)
    prompts, responses = _drawn(model, instructions, most)
    rewards = _rewards(rater, prompts, responses)
    qualities = _qualities(model, [each for each in instructions for _ in range(most)], responses)
    result: dict[int, tuple[float, float, float]] = {}
    for size in sizes:
        best = [max(range(row * most, row * most + size), key=rewards.__getitem__) for row in range(len(instructions))]
        chosen = [qualities[index] for index in best]
        result[size] = mean(chosen), sum(each == 1.0 for each in chosen) / n, mean(rewards[index] for index in best)
    return result


def drawn_responses(folder: Path, instructions: Sequence[Instruction], device: torch.device) -> list[str]:
    """Return a response to each instruction, drawn at temperature 1."""
    model = ResponseModel.load(folder, device=device)
    return [model.codec.decode(ids) for ids in _drawn(model, instructions, 1)[1]]


def best_of_n_kl(n: int) -> float:
    """Return the divergence of the best of n responses from the policy that drew them. Stiennon et al. (2020).

    >>> round(best_of_n_kl(4), 3)
    0.636
    """
    return math.log(n) - (n - 1) / n


def win_rate(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the share of instructions on which ours is better; ties count half.

    >>> win_rate([1.0, 0.5, 0.2], [0.5, 0.5, 0.5])
    0.5
    """
    points = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in zip(ours, theirs, strict=True)]
    return mean(points)


def _drawn(
    model: ResponseModel, instructions: Sequence[Instruction], n_samples: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the prompts and a response to each, ``n_samples`` of every instruction."""
    prompts = [[BOS_ID, *encode_prompt(model.codec, each.prompt)] for each in instructions for _ in range(n_samples)]
    generator = torch.Generator().manual_seed(SEED)
    blocked = [id for id in model.no_text if id != EOS_ID]
    responses: list[list[int]] = []
    for begin in range(0, len(prompts), ROWS_PER_BATCH):
        responses += sample_responses(
            model.model,
            prompts[begin : begin + ROWS_PER_BATCH],
            max_tokens=MAX_TOKENS,
            temperature=1.0,
            blocked_ids=blocked,
            generator=generator,
        )
    return prompts, responses


@torch.no_grad()
def _rewards(rater: RewardModel, prompts: Sequence[list[int]], responses: Sequence[list[int]]) -> list[float]:
    rewards: list[float] = []
    for begin in range(0, len(prompts), ROWS_PER_BATCH):
        part = slice(begin, begin + ROWS_PER_BATCH)
        rewards += rewards_of(rater.model, prompts[part], responses[part]).tolist()
    return rewards


def _qualities(
    model: ResponseModel, instructions: Sequence[Instruction], responses: Sequence[list[int]]
) -> list[float]:
    texts = [model.codec.decode(ids) for ids in responses]
    return [response_quality(text, instruction.response) for text, instruction in zip(texts, instructions, strict=True)]
