"""The causal language modelling task: predict the next token of a document, from the ones before it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import cast

import torch
from torch import nn

from transduce.config import DataConfig, LanguageModelConfig, ModelConfig, RunConfig, Split, TrainingConfig
from transduce.corpora.plain_text import Document, PlainText
from transduce.data import Store
from transduce.data.documents import SegmentBatches, TextBatch, open_documents, write_documents
from transduce.errors import ConfigError, DataError
from transduce.loss import LossConfig, LossSum
from transduce.metrics import TokenisedBleu
from transduce.model import AuxiliaryLosses, TransformerLM
from transduce.tasks.language_model import LanguageModel, TextScore
from transduce.tasks.pairs import tokenizer_trainer
from transduce.tasks.preparation import EVALUATION_SPLITS, Prepared, new_prepared
from transduce.tasks.registry import register
from transduce.tasks.task import Task, Use
from transduce.tasks.validation import mean_nll_nats
from transduce.text import LANGUAGE_MODEL_TOKENS, Tokenizers, normalise
from transduce.text.documents import DocumentCodec
from transduce.training import DistributedContext, Score, Validation

__all__ = ["CausalLanguageModelling"]


class TextObjective:
    """Cross-entropy of the next token. Radford et al. (2018)."""

    def __init__(self, model: TransformerLM, config: TrainingConfig) -> None:
        """Raises ConfigError for R-Drop, which is for pairs."""
        if config.r_drop:
            raise ConfigError(f"r_drop needs a task on pairs, such as 'translation', got r_drop = {config.r_drop:g}")
        self.model, self.config = model, config

    def __call__(self, batch: TextBatch, update: int = 0) -> LossSum:
        """Return the loss of one batch."""
        losses = AuxiliaryLosses() if self.model.training else None
        states_ND = self.model(batch.ids_BT, auxiliary=losses)
        loss = self.model.output.loss(states_ND, batch.targets_N, LossConfig(self.config.eps_ls, self.config.smoothing))
        auxiliary = None if losses is None else losses.total()
        return loss if auxiliary is None else replace(loss, auxiliary_nats=auxiliary)


class TextValidation:
    """Perplexity of the dev text in segments, and its bits per byte."""

    def __init__(
        self,
        model: Callable[[], TransformerLM],
        batches: SegmentBatches,
        n_bytes: int,
        config: TrainingConfig,
        *,
        device: torch.device,
        distributed: DistributedContext | None = None,
    ) -> None:
        self._get_model, self._batches, self._n_bytes, self._config = model, batches, n_bytes, config
        self._device_type, self._distributed = device.type, distributed or DistributedContext()

    def __call__(self, should_stop: Callable[[], bool] = lambda: False) -> Validation | None:
        """Validate once; None, on all ranks, if ``should_stop`` interrupted any of them."""
        objective = TextObjective(self._get_model(), self._config)
        nll_nats = mean_nll_nats(
            objective, self._batches, self._config, self._device_type, self._distributed, should_stop=should_stop
        )
        if nll_nats is None:
            return None
        n_tokens = sum(self._batches.n_tokens(0, index)[1] for index in range(self._batches.n_batches(0)))
        score = TextScore(nll_nats * n_tokens, n_tokens, self._n_bytes)
        return Validation(nll_nats, {"bits_per_byte": Score(score.bits_per_byte)})


class CausalLanguageModelling(Task[TextBatch]):
    """Decoder-only models: each position sees itself and earlier ones."""

    name = "causal-lm"
    doing = "modelling"
    rows = "documents"

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
        for name in ("masks", "bpe_dropout", "recombination"):
            if getattr(config, name):
                raise ConfigError(f"data.{name} is for tasks on pairs; leave it out for task = 'causal-lm'")
        text = PlainText(config, data_folder)
        names = {split: text.name_of(split) for split in EVALUATION_SPLITS if text.has(split)}

        def lines() -> Iterator[str]:
            documents = chain.from_iterable(text.train_documents(corpus) for corpus in text.corpora)
            return (normalise(line) for document in documents for line in document)

        with new_prepared(config, folder, names) as temporary:
            tokenizer = tokenizer_trainer(config, extra_tokens=LANGUAGE_MODEL_TOKENS)(lines())
            tokenizers = Tokenizers(tokenizer, tokenizer)
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

    def build_model(self, config: ModelConfig, tokenizers: Tokenizers | None) -> TransformerLM:
        """Build a model. Raises ConfigError unless it is a causal language model."""
        return TransformerLM.from_config(_causal(config))

    def batches(self, store: Store, config: RunConfig, device: torch.device) -> SegmentBatches:
        """Return batches of segments as long as the model's window."""
        return SegmentBatches(
            store,
            max_length=_causal(config.model).n_positions,
            max_tokens=config.training.max_tokens_per_batch,
            seed=config.training.seed,
            device=device,
            weights=config.data.weights,
        )

    def objective(self, model: nn.Module, config: TrainingConfig) -> TextObjective:
        """Return the cross-entropy of the next token."""
        return TextObjective(cast(TransformerLM, model), config)

    def validator(
        self,
        model: Callable[[], nn.Module],
        prepared: Prepared,
        config: RunConfig,
        *,
        device: torch.device,
        distributed: DistributedContext | None = None,
    ) -> TextValidation | None:
        """Return the validation: perplexity and bits per byte of the dev text."""
        if prepared.dev is None:
            return None
        batches = SegmentBatches(
            prepared.dev,
            max_length=_causal(config.model).n_positions,
            max_tokens=config.training.max_tokens_per_batch,
            seed=0,
            device=device,
        )
        get_model = cast(Callable[[], TransformerLM], model)
        n_bytes = sum(
            len(text.encode("utf-8", "surrogateescape")) for text in _texts(prepared.dev, prepared.tokenizers)
        )
        return TextValidation(get_model, batches, n_bytes, config.training, device=device, distributed=distributed)

    def load(self, model_folder: Path, *, device: str | torch.device = "cpu") -> LanguageModel:
        """Load a language model."""
        return LanguageModel.load(model_folder, device=device)

    def evaluate(
        self,
        model_folder: Path,
        prepared: Prepared,
        split: Split,
        *,
        device: str | torch.device = "cpu",
        also: Collection[TokenisedBleu] = (),
    ) -> TextScore:
        """Return the cross-entropy of dev or test, with a sliding window."""
        store = prepared.dev if split == "dev" else self.open_store(prepared.folder / split, prepared.tokenizers)
        if store is None:
            raise DataError(f"{prepared.folder} has no {split} text")
        model = self.load(model_folder, device=device)
        return model.score(text.removesuffix("\n").split("\n") for text in _texts(store, prepared.tokenizers))

    def score_lines(self, scores: TextScore, config: RunConfig) -> list[str]:
        """Return the scores for the model card."""
        return [
            f"- perplexity per token: {scores.perplexity:.3f}, of {scores.tokens:,} tokens",
            f"- bits per byte: {scores.bits_per_byte:.4f}, of {scores.bytes:,} bytes",
        ]

    def use(self, data: DataConfig) -> Use:
        """Describe the use of a language model."""
        return Use("continuing text", "generate", "LanguageModel.load(folder).generate([...])")


def _causal(config: ModelConfig) -> LanguageModelConfig:
    """Return the configuration of a causal language model. Raises ConfigError for any other."""
    if not isinstance(config, LanguageModelConfig) or not config.is_causal:
        raise ConfigError("task = 'causal-lm' needs model.system = 'language-model' and model.is_causal = true")
    return config


def _texts(store: Store, tokenizers: Tokenizers) -> Iterator[str]:
    """Yield the text of each document of a store."""
    codec, column = DocumentCodec(tokenizers.src), store.columns["text"]
    return (codec.decode(column.row(row).tolist()) for row in range(len(store)))


register(CausalLanguageModelling())
