"""The ``Task`` interface: everything specific to a task, from its settings to scoring models.

To add a task, ``register`` an instance of a subclass; recipes name it in ``data.task``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NotRequired, Protocol, TypedDict, Unpack

import torch
from torch import Tensor, nn

from transduce.config import (
    BeamSearchConfig,
    DataConfig,
    LanguageModelConfig,
    ModelConfig,
    RunConfig,
    SearchConfig,
    Split,
    TransformerConfig,
    config_from_mapping,
)
from transduce.config.record import one_of
from transduce.data import Store, open_store
from transduce.data.batch_source import BatchOptions
from transduce.errors import CheckpointError, ConfigError, DataError
from transduce.findings import Finding
from transduce.inference.folder import read_model_config
from transduce.inference.trained_model import TrainedModel
from transduce.metrics import TokenisedBleu
from transduce.text import Tokenizers
from transduce.training import BatchSource, DistributedContext, Objective, Validate
from transduce.training.gradients import BatchT

if TYPE_CHECKING:
    from transduce.inference.translation.line_statistics import LineStatistics
    from transduce.tasks.preparation import Preparation
    from transduce.tasks.prepared import Prepared

__all__ = ["CardUsage", "EvaluationOptions", "OwnSettings", "Processes", "Scores", "Task", "score_table"]


class Scores(Protocol):
    """Scores of an evaluation."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that the command line prints."""


def score_table(scores: Scores) -> list[str]:
    """Return the scores that have signatures as a table of Markdown."""
    entries = ((name, entry) for name, entry in scores.as_json().items() if isinstance(entry, dict))
    return [
        "| metric | score | signature |",
        "| --- | --- | --- |",
        *(f"| {name} | {each['score']:.2f} | `{each['signature'].replace('|', ' ')}` |" for name, each in entries),
    ]


class Processes(TypedDict):
    """Where a run validates."""

    device: torch.device
    distributed: NotRequired[DistributedContext]  # default: one process


class EvaluationOptions(TypedDict):
    """How a model folder is evaluated."""

    device: str | torch.device
    extra_bleus: NotRequired[Collection[TokenisedBleu]]  # tokenised BLEUs beside sacreBLEU, for tasks with text output


class OwnSettings(DataConfig):
    """The data settings that every task reads, and no others."""


@dataclass(frozen=True, slots=True)
class CardUsage:
    """Instructions for using a model, printed on its model card."""

    what: str  # the purpose: "en to de"
    verb: str  # the command: "translate"
    call: str  # the Python code: "Translator.load(folder).translate([...])"


class Task(ABC, Generic[BatchT]):
    """A task that models are trained for: settings, data, model, objective and evaluation."""

    name: ClassVar[str]  # in recipes (data.task) and in the config.json of model folders
    example_noun: ClassVar[str] = "pairs"  # what a store has, for messages
    counted_noun: ClassVar[str] = "target tokens"  # what a loss is summed over, for messages
    progress_verb: ClassVar[str]  # the activity of its models, as a participle for messages: "translating"
    usage: ClassVar[CardUsage | None] = None  # if it does not depend on the data
    is_parallel: ClassVar[bool] = True  # whether several processes can share its batches
    is_shardable: ClassVar[bool] = True  # whether these can share the model's weights, too
    is_of_tokens: ClassVar[bool] = True  # whether the loss of a validation is that of tokens, with a perplexity
    preparation: ClassVar[type[Preparation[Any, Any]]]  # how its prepared folders are written
    # The side for whose tokens ``Cost.flops_per_token`` counts: one of the target stands for one of the source, too.
    flop_tokens: ClassVar[Literal["source", "target"] | None] = "target"

    # What it reads of a recipe: the table data, of training and alignment what not every task reads, kinds of search.
    settings: ClassVar[type[DataConfig]] = OwnSettings
    reads: ClassVar[frozenset[str]] = frozenset()
    searches: ClassVar[tuple[str, ...]] = ("beam", "greedy", "sampling")
    # What its models are: systems, direction and source of their records, and the fields ``decoder`` and ``output``.
    system: ClassVar[type[ModelConfig]] = ModelConfig
    is_causal: ClassVar[bool | None] = None  # None: either
    source: ClassVar[str] = "tokens"
    has_one_vocabulary: ClassVar[bool] = False  # of source and target
    has_words_as_targets: ClassVar[bool] = False  # all those of the training text: how many, preparation finds
    own_model: ClassVar[Mapping[str, str]] = {}
    used_as: ClassVar[str | None] = None  # the task whose class uses its models, if none names it in ``Capabilities``

    @property
    def sentence_noun(self) -> str:
        """What is scored of a text, for messages."""
        return "sentences" if self.example_noun == "pairs" else self.example_noun

    def require_fit(self, config: RunConfig) -> None:
        """Raise ValueError if the settings of a recipe do not fit the task or each other."""
        model, search = config.model, config.search
        if not isinstance(model, self.system):
            systems = one_of([name for name, kind in ModelConfig.members.items() if issubclass(kind, self.system)])
            raise ValueError(
                f"task = {self.name!r} needs model.system = {systems}, got model.system = {model.system!r}"
            )
        if self.has_one_vocabulary and not config.data.shared_vocabulary:
            raise ValueError(f"task = {self.name!r} has one vocabulary; leave out shared_vocabulary = false")
        if isinstance(model, LanguageModelConfig) and self.is_causal not in (None, model.is_causal):
            raise ValueError(f"task = {self.name!r} needs model.is_causal = {str(self.is_causal).lower()}")
        if isinstance(model, TransformerConfig) and model.source != self.source:
            raise ValueError(f"task = {self.name!r} needs model.source = {self.source!r}, got {model.source!r}")
        if not self.searches and search != BeamSearchConfig():
            raise ValueError(f"task = {self.name!r} reads no table search; leave it out")
        if self.searches and search.kind not in self.searches:
            kinds = one_of(self.searches)
            raise ValueError(f"task = {self.name!r} needs search.kind = {kinds}, got search.kind = {search.kind!r}")

    def examine(self, data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterable[Finding]:
        """Examine the text that a recipe names, for ``transduce doctor``. Nothing by default."""
        return ()

    def open_store(self, folder: Path, tokenizers: Tokenizers) -> Store:
        """Open a store of a prepared folder. Raises DataError if it cannot be used."""
        return open_store(folder, tokenizer_fingerprint=tokenizers.fingerprint)

    def split_store(self, prepared: Prepared, split: Split) -> Store:
        """Return the store of dev or test. Raises DataError if there is none."""
        if split not in prepared.text_names:
            raise DataError(f"{prepared.folder} has no {split} text")
        return self.open_store(prepared.folder / split, prepared.tokenizers)

    def remarks_on_search(self, folder: Path, search: SearchConfig) -> Iterable[str]:
        """Return what of the prepared text in ``folder`` the outputs of a search cannot be like. Nothing by default."""
        return ()

    def text_files(self, split: Split) -> tuple[str, ...]:
        """Return the names of the dev or test text files in a prepared folder; none if the task keeps no text."""
        return ()

    def n_flop_tokens(self, src_tokens: int, tgt_tokens: int) -> int | None:
        """Return the number of tokens of a run that ``flop_tokens`` names; None if it names none."""
        return None if self.flop_tokens is None else {"source": src_tokens, "target": tgt_tokens}[self.flop_tokens]

    def model_config(self, config: ModelConfig, src_vocab_size: int, tgt_vocab_size: int) -> ModelConfig:
        """Return the architecture with the vocabulary sizes, and with ``own_model``.

        Raises ConfigError if these do not fit it, or if it is the model of another task.
        """
        values = config.with_vocabulary(src_vocab_size, tgt_vocab_size).model_dump()
        for name in ("decoder", "output"):
            default = type(config).model_fields[name].default if name in values else None
            if name in values and values[name] not in (default, self.own_model.get(name, default)):
                raise ConfigError(f"model.{name} = {values[name]!r} is not of task = {self.name!r}; leave it out")
        return config_from_mapping(type(config), values | dict(self.own_model), where=f"task = {self.name!r}")

    def start_model(self, model: nn.Module, prepared: Prepared, config: RunConfig) -> None:
        """Change a new model before its first update, after it took weights of another one. Nothing by default."""

    def postprocess_weights(
        self, weights: Mapping[str, Tensor], prepared: Prepared, config: RunConfig, device: torch.device
    ) -> Mapping[str, Tensor]:
        """Return the weights, by name on disk, that the model folder of a finished run gets. By default, these."""
        return weights

    def batch_options(self, config: RunConfig, device: torch.device) -> BatchOptions:
        """Return what training batches of any kind need."""
        training, weights = config.training, config.data.weights
        return {
            "max_tokens": training.max_tokens_per_batch,
            "seed": training.seed,
            "device": device,
            "weights": weights,
        }

    @abstractmethod
    def batches(self, store: Store, config: RunConfig, device: torch.device) -> BatchSource[BatchT]:
        """Return the training batches."""

    @abstractmethod
    def objective(self, model: nn.Module, config: RunConfig) -> Objective[BatchT]:
        """Return the training objective."""

    def validator(
        self, model: Callable[[], nn.Module], prepared: Prepared, config: RunConfig, **on: Unpack[Processes]
    ) -> Validate | None:
        """Return the callback that validates on the dev set, or None if the task has no validation.

        ``model`` is called to get the model to validate, with its full weights, in evaluation mode.
        """
        return None

    def with_objective(
        self,
        validate: Validate,
        objective: Objective[BatchT],
        model: Callable[[], nn.Module],
        prepared: Prepared,
        config: RunConfig,
        *,
        distributed: DistributedContext,
    ) -> Validate:
        """Return a validation of a run that also reads the state of its objective. By default, ``validate``."""
        return validate

    def validated_scores(self, config: RunConfig) -> Sequence[str] | None:
        """Return the names of the scores of a validation, beside its loss; None if they are not known before."""
        return None

    def require_best_by(self, config: RunConfig) -> None:
        """Raise ConfigError if ``training.best_by`` is no score of a validation."""
        names, best_by = self.validated_scores(config), config.training.best_by
        known = ("loss", *(("perplexity",) if self.is_of_tokens else ()), *(names or ()))
        if names is not None and best_by not in known:
            hint = "" if config.training.validation_bleu else "; with training.validation_bleu = true there may be more"
            raise ConfigError(
                f"training.best_by should be a score of the validation, {', '.join(map(repr, known))}, got {best_by!r}"
                f"{hint}"
            )

    def load(self, model_folder: Path, *, device: str | torch.device = "cpu") -> Any:
        """Load what users call, such as a ``Translator``. Raises CheckpointError if the folder cannot be used."""
        saved = read_model_config(model_folder)
        if saved.task != self.name:
            raise CheckpointError(f"{model_folder} holds a model for {saved.task}, not for {self.name}")
        return TrainedModel.class_for(saved).load(model_folder, device=device)

    @abstractmethod
    def evaluate(
        self, model_folder: Path, prepared: Prepared, split: Split, **options: Unpack[EvaluationOptions]
    ) -> Scores:
        """Evaluate a model folder on dev or test."""

    def score_lines(self, scores: Any, config: RunConfig) -> Sequence[str]:
        """Return the scores as lines of Markdown, for the model card."""
        return [f"- {name}: {value}" for name, value in scores.as_json().items()]

    def has_learnt(self, scores: Any) -> bool:
        """Whether the scores are those of a model that has learnt something; by default, nobody knows."""
        return True

    def use(self, data: DataConfig) -> CardUsage:
        """Describe how to use a model of this task."""
        return self.usage or CardUsage(self.name, self.name, f"task_named({self.name!r}).load(folder)")

    def longest_source(self, prepared: Prepared) -> int | None:
        """Return the length of the longest training source for the model folder; None if it has it elsewhere."""
        return None

    def line_statistics(self, prepared: Prepared, config: RunConfig) -> LineStatistics | None:
        """Return the statistics of the training lines for the model folder; None if the task needs none."""
        return None

    def with_confidence(
        self, statistics: LineStatistics, model_folder: Path, prepared: Prepared, *, device: str | torch.device
    ) -> LineStatistics:
        """Return the statistics with how sure the model is of its outputs; by default, nobody asks."""
        return statistics
