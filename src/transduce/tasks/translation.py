"""Translation as a training task: batches from a store, the objective over a model, and what validation means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.config import RunConfig, TrainingConfig
from transduce.data import (
    Batch,
    BatchStatistics,
    TokenStore,
    batch_statistics,
    collate,
    epoch_rows,
    plan_batches,
    require_fit,
)
from transduce.errors import ConfigError, DataError
from transduce.metrics import sacrebleu_score
from transduce.model import Transformer
from transduce.tasks.translator import Translator
from transduce.text import Tokenizers
from transduce.training import LossSum, Validation, cross_entropy

__all__ = ["StoreBatches", "TranslationObjective", "TranslationValidation"]


class StoreBatches:
    """The batches of every epoch, planned when first asked for."""

    def __init__(
        self,
        store: TokenStore,
        *,
        max_tokens: int,
        seed: int,
        device: torch.device,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        """``weights``: how often an epoch reads the pairs of each corpus of the store; once, where they are missing.

        Raises DataError if a pair is too long for any batch, ConfigError if there are epochs that read nothing.
        """
        try:
            require_fit(store.src_lengths, store.tgt_lengths, max_tokens=max_tokens)
        except DataError as error:
            raise DataError(f"{store.folder}: {error}") from None
        self.store, self.max_tokens, self.seed, self.device = store, max_tokens, seed, device
        self._weights = [(weights or {}).get(corpus, 1.0) for corpus in store.summary.n_pairs_of]
        self._planned: tuple[int, Sequence[NDArray[np.int64]]] | None = None
        n_pairs_of = store.summary.n_pairs_of
        if not sum(floor(weight * n) for weight, n in zip(self._weights, n_pairs_of.values(), strict=True)):
            raise ConfigError(f"data.corpus: with these weights there are epochs without any pair, got {weights}")

    def n_batches(self, epoch: int) -> int:
        """How many batches this epoch has."""
        return len(self._plan(epoch))

    def batch(self, epoch: int, index: int) -> Batch:
        """One of them."""
        return collate(self.store, self._plan(epoch)[index]).to(self.device)

    def name(self, epoch: int, index: int) -> str:
        """Where it stands, and its first pairs in the store."""
        rows = self._plan(epoch)[index]
        some = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
        return f"batch {index} of epoch {epoch} (rows {some} of the store)"

    def statistics(self, epoch: int) -> BatchStatistics:
        """How full the batches of an epoch are."""
        return batch_statistics(self.store.src_lengths, self.store.tgt_lengths, self._plan(epoch))

    def _plan(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        if self._planned is None or self._planned[0] != epoch:
            self._planned = epoch, self._new_plan(epoch)
        return self._planned[1]

    def _new_plan(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        store, seed = self.store, self.seed
        n_pairs_of, n_encodings = list(store.summary.n_pairs_of.values()), store.summary.n_encodings
        rows_R = epoch_rows(n_pairs_of, self._weights, n_encodings=n_encodings, seed=seed, epoch=epoch)
        lengths = store.src_lengths, store.tgt_lengths
        return plan_batches(*lengths, max_tokens=self.max_tokens, seed=seed, epoch=epoch, rows_R=rows_R)


class TranslationObjective:
    """Label-smoothed cross-entropy of the target given the source. Sections 3.1 and 5.4."""

    def __init__(self, model: Transformer, config: TrainingConfig) -> None:
        self.model, self.config = model, config

    def __call__(self, batch: Batch) -> LossSum:
        """The loss of one batch."""
        states_ND = self.model(batch.src_BS, batch.tgt_in_BT)
        return cross_entropy(
            states_ND,
            self.model.output_weight,
            batch.tgt_out_M,
            eps_ls=self.config.eps_ls,
            smoothing=self.config.smoothing,
        )


class TranslationValidation:
    """Perplexity of the dev store, and BLEU of its first sentences by the run's own search.

    Translations and score come from the functions that ``evaluate`` calls.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizers: Tokenizers,
        store: TokenStore,
        text: tuple[Sequence[str], Sequence[str]],
        config: RunConfig,
    ) -> None:
        self.model, self.tokenizers, self.run_config, self.config = model, tokenizers, config, config.training
        device = model.output_weight.device
        self._objective = TranslationObjective(model, config.training)
        self._batches = StoreBatches(store, max_tokens=config.training.max_tokens_per_batch, seed=0, device=device)
        self._device_type = device.type
        n_sentences = config.training.validation_sentences
        self._sources, self._references = text[0][:n_sentences], text[1][:n_sentences]

    def __call__(self) -> Validation:
        """Look once; the model is in evaluation mode and records no gradient."""
        nll_nats = self.mean_nll_nats()
        if not self.config.validation_bleu:
            return Validation(nll_nats)
        score = sacrebleu_score(self._translator().translate(self._sources), self._references)
        return Validation(nll_nats, score.score, score.signature)

    def _translator(self) -> Translator:
        """With the weights of now."""
        config = self.run_config
        return Translator(
            self.model,
            self.tokenizers,
            config.search,
            direction=config.data.direction,
            precision=config.training.precision,
        )

    def mean_nll_nats(self) -> float:
        """Not smoothed, per target token of the whole dev store. Section 6.2."""
        nll_nats, n_tokens = 0.0, 0
        for index in range(self._batches.n_batches(0)):
            with torch.autocast(self._device_type, torch.bfloat16, enabled=self.config.precision == "bf16"):
                loss = self._objective(self._batches.batch(0, index))
            nll_nats, n_tokens = nll_nats + float(loss.nll_nats), n_tokens + loss.n_tokens
        return nll_nats / n_tokens
