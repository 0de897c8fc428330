"""Rollouts: responses sampled from a policy.

Shapes: B sequences (responses).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from transduce.config import SampledSearchConfig
from transduce.inference.engine import EngineSettings, Request, Run
from transduce.inference.engines import make_engine
from transduce.model import TransformerLM
from transduce.text import EOS_ID

__all__ = ["Rater", "sample_responses"]

Ids = Sequence[int]
# Scores of responses (EOS included, if they have an end) to prompts (BOS included), (B,).
Rater = Callable[[Sequence[Ids], Sequence[Ids]], Tensor]


def sample_responses(
    model: TransformerLM,
    prompts: Sequence[Ids],
    *,
    max_tokens: int,
    temperature: float,
    blocked_ids: Sequence[int],
    generator: torch.Generator,
) -> list[list[int]]:
    """Draw a response to each prompt, until EOS, for ``max_tokens`` or to the end of the model's window.

    EOS is part of a finished response.

    All are drawn from one generator on the CPU. It gives numbers for all prompts at every step, so that no draw depends
    on which others have ended.
    """

    def draws(rows: Sequence[int]) -> list[float]:
        uniform: list[float] = torch.rand(len(prompts), 1, generator=generator, dtype=torch.float64)[:, 0].tolist()
        return [uniform[row] for row in rows]

    rooms = [max_tokens if model.window is None else min(max_tokens, model.window - len(each)) for each in prompts]
    window = model.window if any(each < max_tokens for each in rooms) else None
    engine = make_engine(model, settings=EngineSettings(suppressed_ids=blocked_ids, window=window))
    requests = [Request(room, prompt=prompt) for room, prompt in zip(rooms, prompts, strict=True)]
    found = engine.hypotheses(requests, SampledSearchConfig(temperature=temperature), Run(draws=draws))
    assert found is not None  # not interrupted
    return [[*best.ids, *([EOS_ID] if best.is_finished else [])] for (best,) in found]
