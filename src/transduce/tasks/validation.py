"""Validation of tasks on pairs: perplexity of the dev store, and a score of the decoded outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import torch
from torch import nn

from transduce.config import RunConfig, TrainingConfig
from transduce.data import Batch, PairBatches, PairStore, Store
from transduce.inference.translation.mask_statistics import MaskStatistics
from transduce.metrics import perplexity
from transduce.model import EncoderDecoder
from transduce.tasks.objective import PairObjective
from transduce.text import Tokenizers
from transduce.training import BatchSource, DistributedContext, Objective, Score, Validation
from transduce.training.gradients import BatchT

__all__ = ["MultiValidation", "PairValidation", "mean_nll_nats"]


def mean_nll_nats(
    objective: Objective[BatchT],
    batches: BatchSource[BatchT],
    config: TrainingConfig,
    device_type: str,
    distributed: DistributedContext,
    *,
    should_stop: Callable[[], bool],
) -> float | None:
    """Return the negative log-likelihood per target token of an epoch of batches; None if interrupted on any rank.

    Each rank evaluates every n-th batch; the result equals that of one process.
    """
    rank, n, n_batches = distributed.rank, distributed.n, batches.n_batches(0)
    nll_of_batch = torch.zeros(n_batches + 1, dtype=torch.float64)  # the last entry is 1 if interrupted
    for index in range(rank, n_batches, n):
        if should_stop():
            nll_of_batch[-1] = 1
            break
        with torch.autocast(device_type, torch.bfloat16, enabled=config.precision == "bf16"):
            nll_of_batch[index] = objective(batches.batch(0, index), 0).nll_nats
    # Each batch is evaluated on one rank; the others have 0 for it.
    *nll_nats, n_interrupted = distributed.all_gather(nll_of_batch).sum(dim=0).tolist()
    n_tokens = sum(batches.n_tokens(0, index)[1] for index in range(n_batches))
    return None if n_interrupted else sum(nll_nats) / n_tokens


class PairValidation(ABC):
    """Perplexity of the dev store, and a score of the first dev sentences, decoded with the run's search.

    Decoding and scoring use the functions of the final evaluation; search batches are not larger than training's, so
    that a validation needs little memory beyond that of the training. Several processes split batches and sentences
    round-robin; the gathered result equals that of one process.
    """

    score: ClassVar[str]  # its name

    def __init__(
        self,
        model: Callable[[], nn.Module],
        tokenizers: Tokenizers,
        store: Store,
        text: tuple[Sequence[str], Sequence[str]],
        config: RunConfig,
        *,
        device: torch.device,
        distributed: DistributedContext | None = None,
        masks: MaskStatistics | None = None,
    ) -> None:
        """``model`` returns the model to validate, with its full weights, in evaluation mode."""
        self._model, self.tokenizers, self.run_config, self.config = model, tokenizers, config, config.training
        self._batches = self._make_batches(store, config, device)
        self._device_type = device.type
        max_tokens = min(config.search.max_tokens_per_batch, config.training.max_tokens_per_batch)
        self._search = config.search.model_copy(update={"max_tokens_per_batch": max_tokens})
        n_sentences = config.training.validation_sentences
        self._sources, self._references = text[0][:n_sentences], text[1][:n_sentences]
        self._distributed, self._masks = distributed or DistributedContext(), masks

    def _make_batches(self, store: Store, config: RunConfig, device: torch.device) -> BatchSource[Batch]:
        """Return the batches of the dev store."""
        max_tokens = config.training.max_tokens_per_batch
        assert isinstance(store, PairStore)
        return PairBatches(store, max_tokens=max_tokens, seed=0, device=device)

    @abstractmethod
    def _decode(self, model: EncoderDecoder, rows: Sequence[int], should_stop: Callable[[], bool]) -> list[str] | None:
        """Decode the dev sentences ``rows``; None if interrupted."""

    @abstractmethod
    def _validation(self, nll_nats: float, outputs: list[str]) -> Validation:
        """Score the outputs of the first dev sentences; return the score with ``nll_nats``."""

    def __call__(self, should_stop: Callable[[], bool] = lambda: False) -> Validation | None:
        """Validate once; None, on all ranks, if ``should_stop`` interrupted any of them."""
        model = self._model()
        assert isinstance(model, EncoderDecoder)
        nll_nats = mean_nll_nats(
            self._objective(model), self._batches, self.config, self._device_type, self._distributed,
            should_stop=should_stop,
        )  # fmt: skip
        if nll_nats is None or not self.config.validation_bleu:
            return None if nll_nats is None else Validation(nll_nats)
        outputs = self._outputs(model, should_stop)
        return None if outputs is None else self._validation(nll_nats, outputs)

    def _objective(self, model: EncoderDecoder) -> Objective[Batch]:
        """Return what the perplexity is of."""
        return PairObjective(model, self.config)

    def _outputs(self, model: EncoderDecoder, should_stop: Callable[[], bool]) -> list[str] | None:
        """Decode the first dev sentences; each rank takes every n-th."""
        rank, n = self._distributed.rank, self._distributed.n
        own = self._decode(model, range(rank, len(self._sources), n), should_stop)
        by_rank = self._distributed.all_gather_json(own)
        if None in by_rank:
            return None
        return [by_rank[index % n][index // n] for index in range(len(self._sources))]


class MultiValidation:
    """Validation on several dev sets: the first gives the loss; the scores of the others have their names.

    ``OF_ALL`` is the geometric mean of the perplexities: each dev set counts the same, whatever its size.
    """

    OF_ALL: ClassVar[str] = "mean_perplexity"

    def __init__(self, first: PairValidation, others: Mapping[str, PairValidation]) -> None:
        self.first, self.others = first, others

    def __call__(self, should_stop: Callable[[], bool] = lambda: False) -> Validation | None:
        """Validate once; None, on all ranks, if ``should_stop`` interrupted any of them."""
        result = self.first(should_stop)
        if result is None:
            return None
        scores, losses = dict(result.scores), [result.nll_nats]
        for name, validation in self.others.items():
            other = validation(should_stop)
            if other is None:
                return None
            losses.append(other.nll_nats)
            scores[f"{name}_perplexity"] = Score(perplexity(other.nll_nats, 1), lower_is_better=True)
            scores |= {f"{name}_{metric}": score for metric, score in other.scores.items()}
        scores[self.OF_ALL] = Score(perplexity(sum(losses), len(losses)), lower_is_better=True)
        return Validation(result.nll_nats, scores)
