"""Using aligned language models: responses to prompts, and rewards of responses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self, Unpack

from transduce.config import LanguageModelConfig
from transduce.config.decoding import EngineName
from transduce.errors import DataError
from transduce.inference.arguments import require_sequence
from transduce.inference.engine import EngineSettings, ForcedPair
from transduce.inference.engines import make_engine
from transduce.inference.folder import ModelFolder
from transduce.inference.language_models.causal import CausalLanguageModel
from transduce.inference.language_models.language_model import AS_IT_IS, Continuation, GenerationOptions
from transduce.inference.stored_model import StoredModel
from transduce.inference.trained_model import Capabilities, TrainedModel
from transduce.search.sampling import Sampling
from transduce.text import BOS_ID, EOS_ID, Tokenizer
from transduce.text.documents import DocumentCodec

if TYPE_CHECKING:
    from transduce.model import RewardLM

__all__ = ["ResponseModel", "RewardModel", "best_of_n", "encode_prompt", "encode_response"]


def encode_prompt(codec: DocumentCodec, prompt: str) -> list[int]:
    """Return the ids of a prompt without BOS: its lines, each with its end, after which the response begins."""
    return codec.encode(prompt.removesuffix("\n").split("\n"))


def encode_response(codec: DocumentCodec, response: str) -> list[int]:
    """Return the ids of a response without EOS: its lines, the last one without its end."""
    return codec.encode(response.removesuffix("\n").split("\n"))[:-1]


class ResponseModel(CausalLanguageModel):
    """A language model that responds to prompts: ``LanguageModel.load(folder).generate(["Negate: He sleeps."])``."""

    capabilities = replace(
        CausalLanguageModel.capabilities,
        tasks=("sft", "dpo", "ppo", "reinforce"),
        what="a model that responds to prompts",
    )

    def generate(self, prompts: Sequence[str], **options: Unpack[GenerationOptions]) -> list[Continuation]:
        """Respond to each prompt; arguments and errors are those of ``CausalLanguageModel.generate``."""
        require_sequence(prompts, "generate takes a list of prompts", "for one prompt, generate([prompt])[0]")
        whole = [prompt if prompt.endswith("\n") else f"{prompt}\n" for prompt in prompts]
        continued = super().generate(whole, **options)
        return [replace(each, prompt=prompt) for each, prompt in zip(continued, prompts, strict=True)]


class RewardModel(TrainedModel):
    """A model that rates responses: ``RewardModel.load(folder).rate([("Negate: He sings.", "He does not sing.")])``."""

    capabilities = Capabilities(
        ("reward",), "a reward model", "generate RESPONSE_MODEL --best-of 8 --reward-model",
        why_not_exported="its output is one number for a response, which no library's class has at the last token",
    )  # fmt: skip

    def __init__(self, model: RewardLM | StoredModel, tokenizer: Tokenizer, *, engine: EngineName = "auto") -> None:
        super().__init__(model if isinstance(model, StoredModel) else model.eval())
        self.window = _window(model)
        self.tokenizer, self.codec = tokenizer, DocumentCodec(tokenizer)
        self.engine = make_engine(model, settings=EngineSettings(engine=engine))

    @classmethod
    def from_folder(cls, loaded: ModelFolder, *, engine: EngineName = "auto") -> Self:
        """Return the reward model of a model folder that has been read."""
        return cls(loaded.stored_as(LanguageModelConfig, output="scalar"), loaded.tokenizers.src, engine=engine)

    def rate(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the reward of each (prompt, response); higher is better.

        Rewards compare responses to the same prompt. Those of the texts that the model was trained on have mean 0 and
        standard deviation 1. Raises DataError for a pair that is longer than the model's window.
        """
        encoded = [self._encoded(*pair) for pair in pairs]
        for (ids, answer), (prompt, _) in zip(encoded, pairs, strict=True):
            if self.window is not None and len(ids) + len(answer) > self.window:
                raise DataError(
                    f"a prompt with its response has {len(ids) + len(answer):,} tokens, the model's window"
                    f" {self.window:,}: {prompt[:50]!r}"
                )
        return self.engine.rewards([ForcedPair(*each) for each in encoded])

    def rewards_within_window(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the rewards of ``rate``; -inf for a pair that is longer than the model's window."""
        short_enough = [pair for pair in dict.fromkeys(pairs) if self._has_room_for(*pair)]  # each once
        rewards = dict(zip(short_enough, self.rate(short_enough), strict=True))
        return [rewards.get(pair, -math.inf) for pair in pairs]

    def _has_room_for(self, prompt: str, response: str) -> bool:
        return self.window is None or sum(map(len, self._encoded(prompt, response))) <= self.window

    def _encoded(self, prompt: str, response: str) -> tuple[list[int], list[int]]:
        return [BOS_ID, *encode_prompt(self.codec, prompt)], [*encode_response(self.codec, response), EOS_ID]


def _window(model: RewardLM | StoredModel) -> int | None:
    """Return the number of tokens that a model reads; None: any number."""
    if not isinstance(model, StoredModel):
        return model.window
    assert isinstance(model.config, LanguageModelConfig)
    return model.config.n_positions


def best_of_n(
    model: ResponseModel,
    reward_model: RewardModel,
    prompts: Sequence[str],
    *,
    n: int,
    max_tokens: int = 100,
    sampling: Sampling = AS_IT_IS,
    seed: int = 1,
    first_number: int = 0,
) -> list[Continuation]:
    """Draw n responses to each prompt and return the one with the highest reward.

    One that is too long for the reward model's window is taken only if all are.
    """
    repeated = [prompt for prompt in prompts for _ in range(n)]
    drawn = model.generate(repeated, max_tokens=max_tokens, sampling=sampling, seed=seed, first_number=n * first_number)
    rewards = reward_model.rewards_within_window([(each.prompt, each.text) for each in drawn])
    numbers = (range(start, start + n) for start in range(0, len(drawn), n))
    return [drawn[max(of_prompt, key=rewards.__getitem__)] for of_prompt in numbers]
