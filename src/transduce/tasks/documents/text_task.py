"""The base of tasks on plain text: preparation, objective, validation. A text is a sequence of documents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Unpack, cast

import torch
from torch import nn

from transduce.config import (
    AnyModelConfig,
    DataConfig,
    LanguageModelConfig,
    ModelConfig,
    RunConfig,
    Split,
    TrainingConfig,
)
from transduce.corpora.plain_text import Document, PlainText, TextOfDocuments
from transduce.data import Store
from transduce.data.documents import SegmentOptions, TextBatch, open_documents, write_documents
from transduce.findings import Finding
from transduce.findings.documents import examine_documents_of
from transduce.inference.folder import read_model_folder
from transduce.loss import LossConfig, LossSum
from transduce.metrics import TokenisedBleu, perplexity
from transduce.model import AuxiliaryLosses, TransformerLM
from transduce.tasks.preparation import EVALUATION_SPLITS, Prepared, new_prepared
from transduce.tasks.task import Task
from transduce.tasks.tokenizers import language_model_tokenizers
from transduce.tasks.validation import mean_nll_nats
from transduce.text import Tokenizers, normalise
from transduce.text.documents import DocumentCodec
from transduce.training import BatchSource, DistributedContext, Objective, Score, Validation
from transduce.training.gradients import BatchT

__all__ = ["TargetScore", "TextObjective", "TextTask", "TextValidation", "texts_of"]

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


class TextTask(Task[BatchT]):
    """A task on documents of plain text, with one vocabulary."""

    rows = "documents"
    score_of_validation: ClassVar[str | None] = None  # beside the perplexity

    def validated_scores(self, config: RunConfig) -> tuple[str, ...]:
        """Return the name of the score of a validation, if it has one."""
        return () if self.score_of_validation is None else (self.score_of_validation,)

    def text(self, config: DataConfig, data_folder: Path | None) -> TextOfDocuments:
        """Return the text that a configuration names. Raises ConfigError or DataError if it is missing."""
        return PlainText(config, data_folder)

    def examine(self, data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
        """Examine the documents."""
        return examine_documents_of(data, recipe, data_folder)

    def prepare(
        self,
        config: DataConfig,
        folder: Path,
        *,
        data_folder: Path | None,
        log: Callable[[str], None],
        n_workers: int = 1,
    ) -> None:
        """Train the tokenizer on the training text, and encode all splits; one process does it."""
        text = self.text(config, data_folder)
        names = {split: text.name_of(split) for split in EVALUATION_SPLITS if text.has(split)}

        def lines() -> Iterator[str]:
            documents = chain.from_iterable(text.train_documents(corpus) for corpus in text.corpora)
            return (normalise(line) for document in documents for line in document)

        with new_prepared(config, folder, names) as temporary:
            tokenizers = language_model_tokenizers(config, lines)
            tokenizer = tokenizers.src
            tokenizers.save(temporary)
            log(f"tokenizer: {tokenizer.size:,} tokens")
            documents_of: dict[Split, dict[str, Iterator[Document]]] = {
                "train": {corpus: text.train_documents(corpus) for corpus in text.corpora},
                **{split: {str(split): text.documents(split)} for split in names},
            }
            for split, documents in documents_of.items():
                summary = write_documents(temporary / split, documents, tokenizer, fingerprint=tokenizers.fingerprint)
                n_tokens = sum(summary.n_values_of.values())
                log(f"{split}: {summary.n_pairs:,} documents, {n_tokens:,} tokens")

    def open_store(self, folder: Path, tokenizers: Tokenizers) -> Store:
        """Open a store of a prepared folder. Raises DataError if it cannot be used."""
        return open_documents(folder, fingerprint=tokenizers.fingerprint)

    def longest_segment(self, model: ModelConfig, data: DataConfig) -> int:
        """Return the number of positions of the longest segment: the window of a language model."""
        assert isinstance(model, LanguageModelConfig)
        return model.n_positions

    @abstractmethod
    def text_batches(
        self, store: Store, model: ModelConfig, data: DataConfig, **options: Unpack[SegmentOptions]
    ) -> BatchSource[BatchT]:
        """Return batches of segments of documents."""

    def batches(self, store: Store, config: RunConfig, device: torch.device) -> BatchSource[BatchT]:
        """Return the training batches."""
        max_tokens, seed = config.training.max_tokens_per_batch, config.training.seed
        weights = config.data.weights
        return self.text_batches(
            store, config.model, config.data, max_tokens=max_tokens, seed=seed, device=device, weights=weights
        )

    def objective(self, model: nn.Module, config: RunConfig) -> Objective[BatchT]:
        """Return the cross-entropy of the targets."""
        return cast(Objective[BatchT], TextObjective(cast(TransformerLM, model), config.training))

    def validator(
        self,
        model: Callable[[], nn.Module],
        prepared: Prepared,
        config: RunConfig,
        *,
        device: torch.device,
        distributed: DistributedContext | None = None,
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
                device=device,
            ),
            config.training,
            device=device,
            distributed=distributed,
            scores=self.validation_scores(prepared.dev, prepared.tokenizers),
        )

    def validation_scores(self, dev: Store, tokenizers: Tokenizers) -> Callable[[float, int], Mapping[str, Score]]:
        """Return the function from the cross-entropy of all dev targets, and their number, to further scores."""
        return lambda nats, n_targets: {}

    def score_lines(self, scores: Any, config: RunConfig) -> Sequence[str]:
        """Return the score for the model card."""
        return [f"- perplexity per target: {scores.perplexity:.3f}, of {scores.tokens:,} targets"]

    def evaluate(
        self,
        model_folder: Path,
        prepared: Prepared,
        split: Split,
        *,
        device: str | torch.device = "cpu",
        also: Collection[TokenisedBleu] = (),
    ) -> Any:
        """Return the cross-entropy of the targets of dev or test in fp32; masks and spans have a fixed seed."""
        device = torch.device(device)
        loaded = read_model_folder(model_folder, device=device)
        run = RunConfig(
            model=cast(AnyModelConfig, loaded.config), data=prepared.config, training=TrainingConfig(eps_ls=0.0)
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
