"""Responses of a rollout equal those drawn one by one with the same random numbers."""

from __future__ import annotations

import torch

from transduce.config import LanguageModelConfig
from transduce.inference.language_models.rollouts import sample_responses
from transduce.inference.language_models.sequences import log_probs_of
from transduce.model import TransformerLM
from transduce.model.stack_config import StackConfig
from transduce.text import BOS_ID, EOS_ID, PAD_ID

V, MAX_TOKENS, TEMPERATURE = 12, 9, 1.3
BLOCKED = [PAD_ID, BOS_ID, V - 1]


def alone(model: TransformerLM, prompt: list[int], uniform: list[float]) -> list[int]:
    """Draw a response with the whole sequence computed anew for each token."""
    response: list[int] = []
    for number in uniform:
        state_D = model(torch.tensor([[*prompt, *response]]))[-1]
        logits_1V = model.output.logits(state_D[None])
        weights_V = log_probs_of(logits_1V, temperature=TEMPERATURE, blocked_ids=BLOCKED)[0].double().exp()
        response.append(int((weights_V.cumsum(0) <= number * weights_V.sum()).sum()))
        if response[-1] == EOS_ID:
            break
    return response


@torch.no_grad()
def test_draws_do_not_depend_on_the_rows_that_have_ended() -> None:
    torch.manual_seed(3)
    config = StackConfig(n_layers=2, d_model=16, d_ff=32, n_heads=2, d_k=8, d_v=8, p_drop=0.0)
    model = TransformerLM(config, vocab_size=V).eval()
    prompts = [[BOS_ID, *torch.randint(4, V, (1 + row % 4,)).tolist()] for row in range(40)]
    generator = torch.Generator().manual_seed(7)
    responses = sample_responses(
        model, prompts, max_tokens=MAX_TOKENS, temperature=TEMPERATURE, blocked_ids=BLOCKED, generator=generator
    )
    n_steps = max(map(len, responses))
    again = torch.Generator().manual_seed(7)
    uniform = torch.stack([torch.rand(40, 1, generator=again, dtype=torch.float64)[:, 0] for _ in range(n_steps)], 1)
    assert responses == [alone(model, prompt, row) for prompt, row in zip(prompts, uniform.tolist(), strict=True)]
    assert len({len(each) for each in responses}) > 3  # they end at different steps
    assert all(EOS_ID not in each[:-1] for each in responses)
    assert not {id for each in responses for id in each} & set(BLOCKED)


@torch.no_grad()
def test_responses_end_with_the_window() -> None:
    torch.manual_seed(3)
    sizes = {"d_model": 16, "d_ff": 32, "n_heads": 2, "d_k": 8, "d_v": 8}
    config = LanguageModelConfig(n_layers=1, vocab_size=V, positions="learned", n_positions=6, **sizes)
    model = TransformerLM.from_config(config).eval()
    prompts, blocked = [[BOS_ID, *[5] * n] for n in (1, 4)], [*BLOCKED, EOS_ID]
    responses = sample_responses(
        model, prompts, max_tokens=3, temperature=1.0, blocked_ids=blocked, generator=torch.Generator().manual_seed(7)
    )
    assert [len(each) for each in responses] == [3, 1]
