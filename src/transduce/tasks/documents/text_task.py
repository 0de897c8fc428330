"""The base of tasks on plain text: preparation, objective, validation. A text is a sequence of documents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Unpack

import torch
from torch import nn

from transduce.config import (
    DataConfig,
    DocumentsData,
    LanguageModelConfig,
    ModelConfig,
    RunConfig,
    Split,
    TrainingConfig,
)
from transduce.corpora.plain_text import Document, PlainText
from transduce.data import Ids, Store, StoreSummary
from transduce.data.batch_source import BatchOptions
from transduce.data.documents import TEXT, TextBatch, document_rows
from transduce.findings import Finding
from transduce.findings.documents import examine_documents_of
from transduce.inference.folder import read_model_folder
from transduce.loss import LossConfig, LossSum
from transduce.metrics import perplexity
from transduce.model import AuxiliaryLosses, TransformerLM
from transduce.tasks.preparation import DataT, Preparation, Row
from transduce.tasks.prepared import Prepared
from transduce.tasks.task import EvaluationOptions, Processes, Task
from transduce.tasks.validation import mean_nll_nats
from transduce.text import LANGUAGE_MODEL_TOKENS, Tokenizers
from transduce.text.documents import DocumentCodec
from transduce.training import BatchSource, DistributedContext, Objective, Score, Validation
from transduce.training.gradients import BatchT

__all__ = [
    "DocumentPreparation", "TargetScore", "TextObjective", "TextTask", "TextValidation", "text_objective", "texts_of",
]  # fmt: skip

EVALUATION_TOKENS = 8192  # per batch of the final evaluation, unless a segment is longer
EVALUATION_SEED = 0  # of the masks and spans of dev and test


@dataclass(frozen=True, slots=True)
class TargetScore:
    """Cross-entropy of the targets of a text, such as its masked tokens."""

    nats: float
    tokens: int  # targets

    @property
    def perplexity(self) -> float:
        """Perplexity per target."""
        return perplexity(self.nats, self.tokens)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that the command line prints."""
        return {"perplexity": self.perplexity, "tokens": self.tokens}


class TextObjective:
    """Cross-entropy of the targets of a text, at all positions or some. Radford et al. (2018), Devlin et al. (2019)."""

    def __init__(self, model: TransformerLM, config: TrainingConfig) -> None:
        self.model, self.config = model, config

    def __call__(self, batch: TextBatch, update: int = 0) -> LossSum:
        """Return the loss of one batch."""
        losses = AuxiliaryLosses() if self.model.training else None
        states_ND = self.model(batch.ids_BT, auxiliary=losses)
        if batch.positions_N is not None:
            states_ND = states_ND.index_select(0, batch.positions_N)
        loss = self.model.output.loss(states_ND, batch.targets_N, LossConfig(self.config.eps_ls, self.config.smoothing))
        auxiliary = None if losses is None else losses.total()
        return loss if auxiliary is None else replace(loss, auxiliary_nats=auxiliary)


def text_objective(model: nn.Module, config: TrainingConfig) -> TextObjective:
    """Return the objective of a language model."""
    assert isinstance(model, TransformerLM)
    return TextObjective(model, config)


class TextValidation:
    """Perplexity of the targets of the dev text, and scores that follow from it."""

    def __init__(
        self,
        objective: Callable[[], Objective[BatchT]],
        batches: BatchSource[BatchT],
        config: TrainingConfig,
        *,
        device: torch.device,
        distributed: DistributedContext | None = None,
        scores: Callable[[float, int], Mapping[str, Score]] = lambda nats, n_targets: {},
    ) -> None:
        """``scores``: called with the cross-entropy of all targets, in nats, and their number."""
        self._objective, self._batches, self._config, self._scores = objective, batches, config, scores
        self._device_type, self._distributed = device.type, distributed or DistributedContext()

    def __call__(self, should_stop: Callable[[], bool] = lambda: False) -> Validation | None:
        """Validate once; None, on all ranks, if ``should_stop`` interrupted any of them."""
        nll_nats = mean_nll_nats(
            self._objective(), self._batches, self._config, self._device_type, self._distributed,
            should_stop=should_stop,
        )  # fmt: skip
        if nll_nats is None:
            return None
        return Validation(nll_nats, dict(self._scores(nll_nats * self.n_targets, self.n_targets)))

    @property
    def n_targets(self) -> int:
        """The number of targets of the text."""
        return sum(self._batches.n_tokens(0, index)[1] for index in range(self._batches.n_batches(0)))


class DocumentPreparation(Preparation[Document, DataT]):
    """Preparation of documents, with one vocabulary."""

    extra_tokens = LANGUAGE_MODEL_TOKENS

    def columns(self) -> dict[str, Ids]:
        """Return the column of the text."""
        return {TEXT: Ids(vocab_size=self.tokenizers.src.size)}

    def rows(self, item: Document) -> Iterator[Row]:
        """Yield the ids of a document."""
        return document_rows(self.texts(item), self.codec, self.left_out)

    def texts(self, item: Document) -> Document:
        """Return the lines of a document, as tokenizers learn them and as they are stored."""
        return item

    def describe(self, summary: StoreSummary) -> str:
        """Return the numbers of documents and tokens, in words."""
        return f"{super().describe(summary)}, {sum(summary.n_values_of.values()):,} tokens"


class PlainTextPreparation(DocumentPreparation[DocumentsData]):
    """Preparation of plain text."""

    def make_source(self, config: DocumentsData) -> PlainText:
        """Return the text that a configuration names."""
        return PlainText(config, self.data_folder)


class TextTask(Task[BatchT]):
    """A task on documents of plain text, with one vocabulary."""

    example_noun = "documents"
    settings: ClassVar[type[DataConfig]] = DocumentsData
    searches: ClassVar[tuple[str, ...]] = ()
    system: ClassVar[type[ModelConfig]] = LanguageModelConfig
    preparation: ClassVar[type[Preparation[Any, Any]]] = PlainTextPreparation
    score_of_validation: ClassVar[str | None] = None  # beside the perplexity

    def validated_scores(self, config: RunConfig) -> tuple[str, ...]:
        """Return the name of the score of a validation, if it has one."""
        return () if self.score_of_validation is None else (self.score_of_validation,)

    def examine(self, data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
        """Examine the documents."""
        return examine_documents_of(data, recipe, data_folder)

    def longest_segment(self, model: ModelConfig, data: DataConfig) -> int:
        """Return the number of positions of the longest segment: the window of a language model."""
        assert isinstance(model, LanguageModelConfig)
        return model.n_positions

    @abstractmethod
    def text_batches(
        self, store: Store, model: ModelConfig, data: DataConfig, **options: Unpack[BatchOptions]
    ) -> BatchSource[BatchT]:
        """Return batches of segments of documents."""

    def batches(self, store: Store, config: RunConfig, device: torch.device) -> BatchSource[BatchT]:
        """Return the training batches."""
        return self.text_batches(store, config.model, config.data, **self.batch_options(config, device))

    def objective(self, model: nn.Module, config: RunConfig) -> Any:
        """Return the cross-entropy of the targets."""
        return text_objective(model, config.training)

    def validator(
        self, model: Callable[[], nn.Module], prepared: Prepared, config: RunConfig, **on: Unpack[Processes]
    ) -> TextValidation | None:
        """Return the validation: perplexity of the targets of the dev text."""
        if prepared.dev is None:
            return None
        return TextValidation(
            lambda: self.objective(model(), config),
            self.text_batches(
                prepared.dev,
                config.model,
                config.data,
                max_tokens=config.training.max_tokens_per_batch,
                seed=EVALUATION_SEED,
                device=on["device"],
            ),
            config.training,
            scores=self.validation_scores(prepared.dev, prepared.tokenizers),
            **on,
        )

    def validation_scores(self, dev: Store, tokenizers: Tokenizers) -> Callable[[float, int], Mapping[str, Score]]:
        """Return the function from the cross-entropy of all dev targets, and their number, to further scores."""
        return lambda nats, n_targets: {}

    def score_lines(self, scores: Any, config: RunConfig) -> Sequence[str]:
        """Return the score for the model card."""
        return [f"- perplexity per target: {scores.perplexity:.3f}, of {scores.tokens:,} targets"]

    def evaluate(
        self, model_folder: Path, prepared: Prepared, split: Split, **options: Unpack[EvaluationOptions]
    ) -> Any:
        """Return the cross-entropy of the targets of dev or test in fp32; masks and spans have a fixed seed."""
        device = torch.device(options["device"])
        loaded = read_model_folder(model_folder, device=device)
        run = RunConfig.model_validate(
            {"model": loaded.config.model_dump(), "data": prepared.config, "training": TrainingConfig(eps_ls=0.0)}
        )
        batches = self.text_batches(
            self.split_store(prepared, split),
            loaded.config,
            prepared.config,
            max_tokens=max(EVALUATION_TOKENS, 2 * self.longest_segment(loaded.config, prepared.config)),
            seed=EVALUATION_SEED,
            device=device,
        )
        validation = TextValidation(lambda: self.objective(loaded.model, run), batches, run.training, device=device)
        with torch.no_grad():
            result = validation()
        assert result is not None
        return TargetScore(result.nll_nats * validation.n_targets, validation.n_targets)


def texts_of(store: Store, tokenizers: Tokenizers) -> Iterator[str]:
    """Yield the text of each document of a store."""
    codec, column = DocumentCodec(tokenizers.src), store.columns["text"]
    return (codec.decode(column.row(row).tolist()) for row in range(len(store)))
