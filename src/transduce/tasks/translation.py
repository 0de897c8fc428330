"""Translation as a training task: batches from a store, the objective over a model, and what validation means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from transduce.model import EncoderDecoder, side_losses
from transduce.tasks.translator import Translator
from transduce.text import Tokenizers
from transduce.training import LossSum, Processes, Validation, cross_entropy, r_drop

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

    def n_rows(self, epoch: int, index: int) -> int:
        """Pairs of a batch."""
        return len(self._plan(epoch)[index])

    def n_tokens(self, epoch: int, index: int) -> tuple[int, int]:
        """Source and target tokens of a batch, end symbols included."""
        rows = self._plan(epoch)[index]
        return int(self.store.src_lengths[rows].sum()), int(self.store.tgt_lengths[rows].sum())

    def batch(self, epoch: int, index: int, *, part: int = 0, n_parts: int = 1) -> Batch:
        """One of them, or every ``n_parts``-th pair of it: a part has about equal lengths, as they stand in order."""
        return collate(self.store, self._plan(epoch)[index][part::n_parts]).to(self.device)

    def largest(self, epoch: int) -> list[int]:
        """The batch with the most tokens, and that with the most cells of attention."""
        src_lengths, tgt_lengths = self.store.src_lengths.astype(np.int64), self.store.tgt_lengths.astype(np.int64)
        costs = []
        for rows in self._plan(epoch):
            n_src, n_tgt = int(src_lengths[rows].max()), int(tgt_lengths[rows].max())
            n_cells = len(rows) * (n_src * n_src + n_tgt * n_tgt + n_src * n_tgt)
            costs.append((int(src_lengths[rows].sum() + tgt_lengths[rows].sum()), n_cells))
        return sorted({max(range(len(costs)), key=lambda index: costs[index][kind]) for kind in (0, 1)})

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

    def __init__(self, model: EncoderDecoder, config: TrainingConfig) -> None:
        self.model, self.config = model, config

    def __call__(self, batch: Batch) -> LossSum:
        """The loss of one batch."""
        config, model = self.config, self.model
        is_twice = config.r_drop > 0 and model.training
        src_BS, tgt_BT = batch.src_BS, batch.tgt_in_BT
        with side_losses() as others:
            states_ND = model(src_BS.repeat(2, 1), tgt_BT.repeat(2, 1)) if is_twice else model(src_BS, tgt_BT)
        eps_ls, smoothing = config.eps_ls, config.smoothing
        if is_twice:
            loss = r_drop(
                states_ND.unflatten(0, (2, -1)),
                model.output_weight,
                batch.tgt_out_M,
                eps_ls=eps_ls,
                smoothing=smoothing,
                alpha=config.r_drop,
            )
        else:
            loss = cross_entropy(states_ND, model.output_weight, batch.tgt_out_M, eps_ls=eps_ls, smoothing=smoothing)
        return replace(loss, loss_nats=loss.loss_nats + sum(others) / (2 if is_twice else 1)) if others else loss


class TranslationValidation:
    """Perplexity of the dev store, and BLEU of its first sentences by the run's own search.

    Translations and score come from the functions that ``evaluate`` calls. Several processes take turns at batches and
    at sentences; what they find is put together in order, so that it is what one would find.
    """

    def __init__(
        self,
        model: Callable[[], EncoderDecoder],
        tokenizers: Tokenizers,
        store: TokenStore,
        text: tuple[Sequence[str], Sequence[str]],
        config: RunConfig,
        *,
        device: torch.device,
        processes: Processes | None = None,
    ) -> None:
        """``model`` gives the model to look at, with all its weights, in evaluation mode."""
        self._model, self.tokenizers, self.run_config, self.config = model, tokenizers, config, config.training
        self._batches = StoreBatches(store, max_tokens=config.training.max_tokens_per_batch, seed=0, device=device)
        self._device_type = device.type
        n_sentences = config.training.validation_sentences
        self._sources, self._references = text[0][:n_sentences], text[1][:n_sentences]
        self._processes = processes or Processes()

    def __call__(self, should_stop: Callable[[], bool] = lambda: False) -> Validation | None:
        """Look once; None, in all processes, if one of them was asked to stop meanwhile."""
        model = self._model()
        nll_nats = self._mean_nll_nats(model, should_stop)
        if nll_nats is None or not self.config.validation_bleu:
            return None if nll_nats is None else Validation(nll_nats)
        translations = self._translations(model, should_stop)
        if translations is None:
            return None
        score = sacrebleu_score(translations, self._references)
        return Validation(nll_nats, score.score, score.signature)

    def mean_nll_nats(self) -> float:
        """Not smoothed, per target token of the whole dev store. Section 6.2."""
        nll_nats = self._mean_nll_nats(self._model(), lambda: False)
        assert nll_nats is not None
        return nll_nats

    def _mean_nll_nats(self, model: EncoderDecoder, should_stop: Callable[[], bool]) -> float | None:
        objective = TranslationObjective(model, self.config)
        rank, n = self._processes.rank, self._processes.n
        n_batches = self._batches.n_batches(0)
        nll_of_batch = torch.zeros(n_batches + 1, dtype=torch.float64)  # the last tells of a stop
        n_tokens = sum(self._batches.n_tokens(0, index)[1] for index in range(n_batches))
        for index in range(rank, n_batches, n):
            if should_stop():
                nll_of_batch[-1] = 1
                break
            with torch.autocast(self._device_type, torch.bfloat16, enabled=self.config.precision == "bf16"):
                nll_of_batch[index] = objective(self._batches.batch(0, index)).nll_nats
        # Each batch is one process's, the others have 0 for it.
        *nlls, n_asked = self._processes.gather(nll_of_batch).sum(dim=0).tolist()
        return None if n_asked else sum(nlls) / n_tokens

    def _translations(self, model: EncoderDecoder, should_stop: Callable[[], bool]) -> list[str] | None:
        """Of the first sentences of dev, with the weights of now."""
        rank, n = self._processes.rank, self._processes.n
        config = self.run_config
        translator = Translator(
            model,
            self.tokenizers,
            config.search,
            direction=config.data.direction,
            precision=config.training.precision,
        )
        own = translator.translate_unless(should_stop, self._sources[rank::n])
        of_process = self._processes.gather_words(own)
        if None in of_process:
            return None
        return [of_process[number % n][number // n] for number in range(len(self._sources))]
