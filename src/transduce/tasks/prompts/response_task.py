"""The base of tasks on prompts with responses: preparation, validation, evaluation of policies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
from torch import nn

from transduce.config import DataConfig, LanguageModelConfig, ModelConfig, RunConfig, Split, TrainingConfig
from transduce.corpora import BUILT_IN
from transduce.corpora.responses import PromptedText, Ranking
from transduce.data import Store
from transduce.data.responses import ResponseBatches, open_responses, prompt_of, responses_of, write_responses
from transduce.errors import ConfigError
from transduce.findings import Finding
from transduce.findings.rankings import examine_prompts_of
from transduce.inference.folder import read_model_folder
from transduce.inference.language_models.responses import ResponseModel, encode_prompt, encode_response
from transduce.metrics import TokenisedBleu, perplexity
from transduce.model import TransformerLM
from transduce.search.sampling import Sampling
from transduce.tasks.documents.text_task import TextObjective, TextValidation
from transduce.tasks.preparation import EVALUATION_SPLITS, Prepared, new_prepared
from transduce.tasks.task import Task, Use
from transduce.tasks.tokenizers import language_model_tokenizers
from transduce.text import EOS_ID, LANGUAGE_MODEL_TOKENS, SPECIAL_TOKENS, Tokenizer, Tokenizers, normalise
from transduce.text.documents import DocumentCodec
from transduce.training import DistributedContext
from transduce.training.gradients import BatchT

__all__ = ["PolicyTask", "ResponseScore", "ResponseTask", "blocked_ids", "text_of_row", "window_of"]

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


class ResponseTask(Task[BatchT]):
    """A task on prompts with responses, on a causal language model."""

    rows = "prompts"
    min_responses: ClassVar[int] = 1  # of each prompt

    def built_in_rows(
        self, config: DataConfig, split: Split, instructions: Iterable[Ranking], log: Callable[[str], None]
    ) -> Iterable[Ranking]:
        """Return the rows to store of the built-in corpus, given instructions with their ideal response: these."""
        return instructions

    def examine(self, data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
        """Examine the prompts and responses."""
        return examine_prompts_of(data, recipe, data_folder)

    def prepare(
        self,
        config: DataConfig,
        folder: Path,
        *,
        data_folder: Path | None,
        log: Callable[[str], None],
        n_workers: int = 1,
    ) -> None:
        """Encode all splits with the tokenizer of the model that the run starts from, or a new one."""
        text = PromptedText(config)
        names = {split: text.name_of(split) for split in EVALUATION_SPLITS if text.name_of(split)}

        def lines() -> Iterator[str]:
            for corpus in text.corpora:
                for ranking in text.train(corpus):
                    for each in (ranking.prompt, *ranking.responses):
                        yield from map(normalise, each.split("\n"))

        with new_prepared(config, folder, names) as temporary:
            tokenizers = language_model_tokenizers(config, lines)
            tokenizer = tokenizers.src
            tokenizers.save(temporary)
            log(f"tokenizer: {tokenizer.size:,} tokens")
            sources: dict[Split, dict[str, bool]] = {  # corpora, and whether each is the built-in one
                "train": {corpus: corpus == BUILT_IN for corpus in text.corpora},
                **{split: {str(split): text.is_built_in(split)} for split in names},
            }
            for split, of_split in sources.items():
                n_left_out, encoded = [0], {}
                for corpus, is_built_in in of_split.items():
                    rows: Iterable[Ranking] = text.train(corpus) if split == "train" else text.of(split)
                    if is_built_in:
                        rows = self.built_in_rows(config, split, rows, log)
                    encoded[corpus] = self._encoded(rows, DocumentCodec(tokenizer), n_left_out)
                summary = write_responses(
                    temporary / split,
                    encoded,
                    tokenizer,
                    fingerprint=tokenizers.fingerprint,
                    max_length=config.max_length,
                )
                left_out = f", {summary.n_too_long:,} too long" if summary.n_too_long else ""
                if n_left_out[0]:
                    left_out += f", {n_left_out[0]:,} with fewer than {self.min_responses} different responses"
                log(f"{split}: {summary.n_pairs:,} prompts{left_out}")

    def _encoded(
        self, rankings: Iterable[Ranking], codec: DocumentCodec, n_left_out: list[int]
    ) -> Iterator[tuple[list[int], list[list[int]]]]:
        """Yield the ids of each row with enough responses; count the others."""
        for ranking in rankings:
            if len(ranking.responses) < self.min_responses:
                n_left_out[0] += 1
            else:
                responses = [encode_response(codec, response) for response in ranking.responses]
                yield encode_prompt(codec, ranking.prompt), responses or [[]]  # none: an empty one

    def open_store(self, folder: Path, tokenizers: Tokenizers) -> Store:
        """Open a store of a prepared folder. Raises DataError if it cannot be used."""
        return open_responses(folder, fingerprint=tokenizers.fingerprint)

    def require_window(self, store: Store, config: RunConfig) -> None:
        """Raise ConfigError if a prompt with its responses may be longer than the window of the model."""
        window = window_of(config)
        if config.data.max_length > window:
            raise ConfigError(
                f"data.max_length = {config.data.max_length:,} is above the window of the model, model.n_positions ="
                f" {window:,}; set both to the same"
            )


class PolicyTask(ResponseTask[BatchT]):
    """A task whose models write responses."""

    doing = "responding"

    def validated_scores(self, config: RunConfig) -> tuple[str, ...]:
        """Return no names: a validation gives the perplexity of the best responses."""
        return ()

    def n_flop_tokens(self, src_tokens: int, tgt_tokens: int) -> int | None:
        """Return None: prompts are read, too, and some tasks read with several models."""
        return None

    def validator(
        self,
        model: Callable[[], nn.Module],
        prepared: Prepared,
        config: RunConfig,
        *,
        device: torch.device,
        distributed: DistributedContext | None = None,
    ) -> TextValidation | None:
        """Return the validation: perplexity of the best responses of dev."""
        if prepared.dev is None:
            return None
        budget = max(config.training.max_tokens_per_batch, 2 * config.data.max_length)
        return TextValidation(
            lambda: TextObjective(cast(TransformerLM, model()), config.training),
            ResponseBatches(prepared.dev, max_tokens=budget, seed=0, device=device),
            config.training,
            device=device,
            distributed=distributed,
        )

    def evaluate(
        self,
        model_folder: Path,
        prepared: Prepared,
        split: Split,
        *,
        device: str | torch.device = "cpu",
        also: Collection[TokenisedBleu] = (),
    ) -> ResponseScore:
        """Return the perplexity of the best responses, and how many greedy responses equal them."""
        device, store = torch.device(device), self.split_store(prepared, split)
        loaded = read_model_folder(model_folder, device=device)
        batches = ResponseBatches(
            store, max_tokens=max(EVALUATION_TOKENS, 2 * prepared.config.max_length), seed=0, device=device
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

    def use(self, data: DataConfig) -> Use:
        """Describe the use of a model that responds to prompts."""
        return Use("responding to prompts", "generate", "LanguageModel.load(folder).generate([...])")
