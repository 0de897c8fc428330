"""The base of tasks on prompts with responses: preparation, validation, evaluation of policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Unpack

import torch
from torch import nn

from transduce.config import (
    SPLITS,
    DataConfig,
    LanguageModelConfig,
    ModelConfig,
    PromptsData,
    RunConfig,
    Split,
    TrainingConfig,
)
from transduce.corpora.responses import PromptedText, Ranking
from transduce.data import Ids, Store, StoreSummary
from transduce.data.responses import PROMPT, RESPONSES, ResponseBatches, prompt_of, response_rows, responses_of
from transduce.errors import ConfigError
from transduce.findings import Finding
from transduce.findings.rankings import examine_prompts_of
from transduce.inference.folder import read_model_folder
from transduce.inference.language_models.responses import ResponseModel, encode_prompt, encode_response
from transduce.metrics import perplexity
from transduce.search.sampling import Sampling
from transduce.tasks.documents.text_task import TextObjective, TextValidation, text_objective
from transduce.tasks.preparation import Preparation, Row
from transduce.tasks.prepared import Prepared
from transduce.tasks.task import CardUsage, EvaluationOptions, Processes, Task
from transduce.text import EOS_ID, LANGUAGE_MODEL_TOKENS, SPECIAL_TOKENS, Tokenizer
from transduce.text.documents import DocumentCodec
from transduce.training.gradients import BatchT

__all__ = [
    "AnsweredPreparation", "PolicyTask", "ResponsePreparation", "ResponseScore", "ResponseTask", "blocked_ids",
    "text_of_row", "window_of",
]  # fmt: skip

EVALUATION_TOKENS = 8192  # of a batch
MAX_RESPONSE = 256  # tokens, in evaluation
GREEDY = Sampling(temperature=0.0)


@dataclass(frozen=True, slots=True)
class ResponseScore:
    """How well a model writes the best responses of a text."""

    perplexity: float  # per token of the best responses, EOS included
    exact: float  # share of greedy responses that are the best response, character by character
    prompts: int

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that the command line prints."""
        return asdict(self)


def blocked_ids(config: ModelConfig) -> list[int]:
    """Return the ids that a policy never writes: special tokens but EOS, the mask token and the sentinels."""
    size = config.vocab_sizes[1]
    special = [id for id in range(len(SPECIAL_TOKENS)) if id != EOS_ID]
    return [*special, *range(size - len(LANGUAGE_MODEL_TOKENS), size)]


def window_of(config: RunConfig) -> int:
    """Return the number of positions that a language model reads."""
    assert isinstance(config.model, LanguageModelConfig)
    return config.model.n_positions


def text_of_row(store: Store, tokenizer: Tokenizer, row: int) -> Ranking:
    """Return the prompt and the responses of a row of a store as text."""
    codec = DocumentCodec(tokenizer)
    prompt = codec.decode(prompt_of(store, row)).removesuffix("\n")
    return Ranking(prompt, tuple(codec.decode(response) for response in responses_of(store, row)))


class ResponsePreparation(Preparation[Ranking, PromptsData]):
    """Preparation of prompts with responses, with the tokenizer of the model that the run starts from, or a new one.

    Prompts with fewer than ``min_responses`` are left out, and those without one of dev and test, which are scored by
    them.
    """

    extra_tokens = LANGUAGE_MODEL_TOKENS
    min_responses: ClassVar[int] = 0
    n_unanswered = 0  # left out of a store

    def make_source(self, config: PromptsData) -> PromptedText:
        """Return the prompts that a configuration names, without dev and test that nobody has answered."""
        source = PromptedText(config)
        for split in () if self.min_responses else SPLITS[1:]:
            if source.name_of(split) and not any(each.responses for each in source.of(split)):
                self.log(f"{source.name_of(split)} is not used: no prompt has a response, which scores on {split} need")
                config = config.model_copy(update={f"{split}_prompts": None})
        return PromptedText(config)

    def texts(self, item: Ranking) -> Iterator[str]:
        """Yield the lines of the prompt and of its responses."""
        return (line for each in (item.prompt, *item.responses) for line in each.split("\n"))

    def columns(self) -> dict[str, Ids]:
        """Return the columns of the prompts and of their responses."""
        ids = Ids(vocab_size=self.tokenizers.src.size)
        return {PROMPT: ids, RESPONSES: ids}

    def rows(self, item: Ranking) -> Iterator[Row]:
        """Yield the ids of a prompt with enough responses; of a training prompt without one, an empty response."""
        if len(item.responses) < self._n_needed:
            self.n_unanswered += 1
            return iter(())
        responses = [encode_response(self.codec, response) for response in item.responses] or [[]]
        prompt = encode_prompt(self.codec, item.prompt)
        return response_rows(prompt, responses, max_length=self.config.max_length, left_out=self.left_out)

    @property
    def _n_needed(self) -> int:
        return self.min_responses if self.split == "train" else max(1, self.min_responses)

    def describe(self, summary: StoreSummary) -> str:
        """Return the number of prompts, and of those left out."""
        n, self.n_unanswered = self.n_unanswered, 0
        without = f", {n:,} with fewer than {self._n_needed} different responses" if n else ""
        return f"{super().describe(summary)}{without}"


class AnsweredPreparation(ResponsePreparation):
    """Preparation of prompts with a response."""

    min_responses = 1


class ResponseTask(Task[BatchT]):
    """A task on prompts with responses, on a causal language model."""

    example_noun = "prompts"
    settings: ClassVar[type[DataConfig]] = PromptsData
    searches: ClassVar[tuple[str, ...]] = ()
    system: ClassVar[type[ModelConfig]] = LanguageModelConfig
    is_causal = True
    preparation: ClassVar[type[Preparation[Any, Any]]] = AnsweredPreparation

    def examine(self, data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
        """Examine the prompts and responses."""
        return examine_prompts_of(data, recipe, data_folder)

    def require_window(self, store: Store, config: RunConfig) -> None:
        """Raise ConfigError if a prompt with its responses may be longer than the window of the model."""
        window, longest = window_of(config), PromptsData.of(config.data).max_length
        if longest > window:
            raise ConfigError(
                f"data.max_length = {longest:,} is above the window of the model, model.n_positions ="
                f" {window:,}; set both to the same"
            )


class PolicyTask(ResponseTask[BatchT]):
    """A task whose models write responses."""

    progress_verb = "responding"
    used_as = "sft"
    flop_tokens = None  # prompts are read, too, and some tasks read with several models
    usage = CardUsage("responding to prompts", "generate", "LanguageModel.load(folder).generate([...])")

    def validated_scores(self, config: RunConfig) -> tuple[str, ...]:
        """Return no names: a validation gives the perplexity of the best responses."""
        return ()

    def validator(
        self, model: Callable[[], nn.Module], prepared: Prepared, config: RunConfig, **on: Unpack[Processes]
    ) -> TextValidation | None:
        """Return the validation: perplexity of the best responses of dev."""
        if prepared.dev is None:
            return None
        budget = max(config.training.max_tokens_per_batch, 2 * PromptsData.of(config.data).max_length)
        return TextValidation(
            lambda: text_objective(model(), config.training),
            ResponseBatches(prepared.dev, max_tokens=budget, seed=0, device=on["device"]),
            config.training,
            **on,
        )

    def evaluate(
        self, model_folder: Path, prepared: Prepared, split: Split, **options: Unpack[EvaluationOptions]
    ) -> ResponseScore:
        """Return the perplexity of the best responses, and how many greedy responses equal them."""
        device, store = torch.device(options["device"]), self.split_store(prepared, split)
        loaded = read_model_folder(model_folder, device=device)
        batches = ResponseBatches(
            store,
            max_tokens=max(EVALUATION_TOKENS, 2 * PromptsData.of(prepared.config).max_length),
            seed=0,
            device=device,
        )
        training = TrainingConfig(eps_ls=0.0)
        validation = TextValidation(lambda: TextObjective(loaded.model, training), batches, training, device=device)
        with torch.no_grad():
            result = validation()
        assert result is not None
        rows = [text_of_row(store, prepared.tokenizers.src, row) for row in range(len(store))]
        model = ResponseModel.from_folder(loaded)
        responses = model.generate([row.prompt for row in rows], sampling=GREEDY, max_tokens=MAX_RESPONSE)
        n_exact = sum(each.text == row.responses[0] for each, row in zip(responses, rows, strict=True))
        return ResponseScore(perplexity(result.nll_nats, 1), n_exact / len(rows), len(rows))

    def score_lines(self, scores: Any, config: RunConfig) -> Sequence[str]:
        """Return the scores for the model card."""
        return [
            f"- perplexity per token of the best responses: {scores.perplexity:.3f}",
            f"- greedy responses that equal the best response: {scores.exact:.1%} of {scores.prompts:,}",
        ]
