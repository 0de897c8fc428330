"""Rankings of a model's own responses to the built-in instructions; a program with noise plays the human."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch

from transduce.corpora.grammar.instructions import response_quality
from transduce.corpora.responses import Ranking
from transduce.errors import CheckpointError, ConfigError
from transduce.inference.language_models.responses import ResponseModel, encode_prompt
from transduce.inference.language_models.rollouts import sample_responses
from transduce.text import BOS_ID, EOS_ID
from transduce.text.chunks import chunks

__all__ = ["N_SAMPLES", "rank_samples"]

N_SAMPLES = 4  # responses to each prompt
TEMPERATURES = (1.0, 0.7)  # each draws as many; the lower one is more like a policy that has learnt from rewards
NOISE = 0.05  # standard deviation of what the ranker adds to the quality of a response
PROMPTS_PER_BATCH = 512
MAX_TOKENS = 64


def rank_samples(model_folder: str | None, rows: Iterable[Ranking], *, seed: int) -> Iterator[Ranking]:
    """Yield for each prompt the different responses that a model draws, ordered by their noisy quality.

    The rows have the ideal response, which the quality is measured by; it is not among the responses unless the model
    draws it. Raises ConfigError without a model that responds to prompts.
    """
    if model_folder is None:
        raise ConfigError("the built-in rankings are of responses of a fine-tuned model; name one with --from")
    try:
        model = ResponseModel.load(Path(model_folder))
    except CheckpointError as error:
        raise ConfigError(f"the built-in rankings are of responses of a fine-tuned model: {error}") from None
    random = np.random.default_rng([seed, 6])
    generator = torch.Generator().manual_seed(seed)
    blocked = [id for id in model.no_text if id != EOS_ID]
    for chunk in chunks(rows, PROMPTS_PER_BATCH, lambda row: len(row.prompt)):
        prompts = [[BOS_ID, *encode_prompt(model.codec, row.prompt)] for row in chunk]
        texts_of: list[list[str]] = [[] for _ in chunk]
        for temperature in TEMPERATURES:
            for _ in range(N_SAMPLES // len(TEMPERATURES)):
                drawn = sample_responses(
                    model.model,
                    prompts,
                    max_tokens=MAX_TOKENS,
                    temperature=temperature,
                    blocked_ids=blocked,
                    generator=generator,
                )
                for texts, ids in zip(texts_of, drawn, strict=True):
                    texts.append(model.codec.decode(ids))
        for row, texts in zip(chunk, texts_of, strict=True):
            different = list(dict.fromkeys(text for text in texts if text.strip()))
            noisy = {text: response_quality(text, row.responses[0]) + random.normal(0, NOISE) for text in different}
            yield Ranking(row.prompt, tuple(sorted(different, key=noisy.__getitem__, reverse=True)))
