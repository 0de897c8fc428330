"""What a task is: the one object that knows what a run is for, from its text to the scores of its model.

A task that nobody here knows is another object of this kind: ``register`` it, and runs can name it (``data.task``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol

import torch
from torch import nn

from transduce.config import DataConfig, ModelConfig, RunConfig, Split, TrainingConfig
from transduce.data import Store, open_store
from transduce.metrics import TokenisedBleu
from transduce.model import Cost, cost_of, make_model
from transduce.text import Tokenizers
from transduce.training import BatchSource, DistributedContext, Objective, Validate
from transduce.training.gradients import BatchT

if TYPE_CHECKING:
    from transduce.tasks.line_statistics import LineStatistics
    from transduce.tasks.preparation import Prepared

__all__ = ["Scores", "Task", "Use"]


class Scores(Protocol):
    """What an evaluation has come to."""

    def as_json(self) -> dict[str, Any]:
        """Plain values, as the command line prints them."""


@dataclass(frozen=True, slots=True)
class Use:
    """How a model is told of in its card."""

    what: str  # it is for: "en to de"
    verb: str  # of the command line: "translate"
    call: str  # in Python: "Translator.load(folder).translate([...])"


class Task(ABC, Generic[BatchT]):
    """A purpose that models are trained for: data, a model, an objective, and how good outputs are."""

    name: ClassVar[str]  # in recipes (data.task) and in the config.json of model folders
    doing: ClassVar[str]  # what its model does with sentences, for people: "translating"

    @abstractmethod
    def prepare(
        self, config: DataConfig, folder: Path, *, data_folder: Path | None, log: Callable[[str], None]
    ) -> None:
        """Write a prepared folder (``new_prepared``): tokenizers, and stores of what is learned from and looked at.

        ``data_folder`` is where corpora are looked for first; ``log`` receives a line about each step.
        """

    def open_store(self, folder: Path, tokenizers: Tokenizers) -> Store:
        """One of the stores of a prepared folder. Raises DataError if it cannot be used."""
        return open_store(folder, tokenizer_fingerprint=tokenizers.fingerprint)

    def text_files(self, split: Split) -> tuple[str, ...]:
        """The files of dev or test text in a prepared folder; none where a task keeps no text."""
        return ()

    def build_model(self, config: ModelConfig, tokenizers: Tokenizers | None) -> nn.Module:
        """A new model, its weights drawn from torch's global generator; without tokenizers, for its shapes."""
        return make_model(config)

    def cost(self, config: ModelConfig) -> Cost:
        """How many weights ``build_model`` makes and what they cost, known before it does."""
        return cost_of(config)

    def model_config(self, config: ModelConfig, tokenizers: Tokenizers) -> ModelConfig:
        """The architecture over the vocabularies that the text has come to."""
        return config.with_vocabulary(tokenizers.src.size, tokenizers.tgt.size)

    @abstractmethod
    def batches(self, store: Store, config: RunConfig, device: torch.device) -> BatchSource[BatchT]:
        """The batches that training reads."""

    @abstractmethod
    def objective(self, model: nn.Module, config: TrainingConfig) -> Objective[BatchT]:
        """What training minimises."""

    def validator(
        self,
        model: Callable[[], nn.Module],
        prepared: Prepared,
        config: RunConfig,
        *,
        device: torch.device,
        distributed: DistributedContext | None = None,
    ) -> Validate | None:
        """A way to look at the dev set; None where there is none.

        ``model`` gives the model to look at, with all its weights, in evaluation mode.
        """
        return None

    @abstractmethod
    def load(self, model_folder: Path, *, device: str | torch.device = "cpu") -> Any:
        """What users call: a translator, a parser. Raises CheckpointError if the folder cannot be used."""

    @abstractmethod
    def evaluate(
        self,
        model_folder: Path,
        prepared: Prepared,
        split: Split,
        *,
        device: str | torch.device,
        also: Collection[TokenisedBleu],
    ) -> Scores:
        """What a model folder comes to on dev or test. ``also`` names further BLEUs, where outputs are text."""

    def score_lines(self, scores: Any, config: RunConfig) -> Sequence[str]:
        """The scores in Markdown, for the model card."""
        return [f"- {name}: {value}" for name, value in scores.as_json().items()]

    def use(self, data: DataConfig) -> Use:
        """How its model is told of."""
        return Use(self.name, self.name, f"task_named({self.name!r}).load(folder)")

    def line_statistics(self, prepared: Prepared, config: RunConfig) -> LineStatistics | None:
        """What a model should know of the lines that it was trained on; None where that is nothing."""
        return None
