"""Reward modelling: a scalar for a response, learnt from rankings. Ouyang et al. (2022), section 3.5.

Shapes: J responses of a ranking, P pairs, R rows of the store.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from transduce.config import SPLITS, RunConfig, Split
from transduce.corpora import BUILT_IN, Source
from transduce.corpora.responses import Ranking
from transduce.data import Store
from transduce.data.responses import RankingBatch, RankingBatches, ranking_tokens
from transduce.inference.language_models.ranked_samples import rank_samples
from transduce.metrics.calibration import expected_calibration_error, reliability_bins
from transduce.model import RewardLM, make_model
from transduce.model.weights import weights_of
from transduce.preferences.rankings import PreferenceObjective, RewardObjective
from transduce.tasks.preparation import Preparation
from transduce.tasks.prepared import Prepared
from transduce.tasks.prompts.response_task import AnsweredPreparation, ResponseTask
from transduce.tasks.registry import register
from transduce.tasks.task import CardUsage, EvaluationOptions, Processes
from transduce.training import DistributedContext, Score, Validation
from transduce.training.checkpoint import load_weights

__all__ = [
    "PAIR_SCORES", "PairScore", "RankingPreparation", "RankingTask", "RewardModelling",
    "margins_of_pairs", "pair_score", "scores_of_pairs",
]  # fmt: skip

PAIR_SCORES = ("accuracy", "margin")  # of a validation
N_NORMALISING = 128  # rankings whose responses get rewards of mean 0 and standard deviation 1


@dataclass(frozen=True, slots=True)
class PairScore:
    """How well scores of responses predict which one of a pair was ranked higher."""

    accuracy: float
    calibration_error: float  # expected, of the predicted probability (Guo et al., 2017)
    loss: float  # nats per pair
    pairs: int

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that the command line prints."""
        return asdict(self)


def pair_score(margins_P: Tensor) -> PairScore:
    """Return the score, given the reward of the better response minus that of the worse one, of each pair.

    >>> pair_score(torch.tensor([2.0, -1.0])).accuracy
    0.5
    """
    probability_P = margins_P.double().sigmoid().numpy()
    confidence_P = np.maximum(probability_P, 1 - probability_P)
    bins = reliability_bins(confidence_P, probability_P > 0.5)
    loss = -torch.nn.functional.logsigmoid(margins_P.double()).mean()
    return PairScore(float((probability_P > 0.5).mean()), expected_calibration_error(bins), float(loss), len(margins_P))


@torch.no_grad()
def margins_of_pairs(objective: PreferenceObjective, batches: RankingBatches) -> Tensor:
    """Return the reward of the better response minus that of the worse one, of all pairs of an epoch, (P,)."""
    margins: list[Tensor] = []
    for index in range(batches.n_batches(0)):
        batch = batches.batch(0, index)
        of_rankings = torch.split(objective.scores(batch), batch.sizes)
        margins += [objective.margins(scores_J).float().cpu() for scores_J in of_rankings]
    return torch.cat(margins)


class RankingPreparation(AnsweredPreparation):
    """Preparation of rankings: own ones, or of responses of the model that the run starts from to instructions."""

    min_responses = 2

    def training_items(self, corpus: str) -> Iterable[Ranking]:
        """Return the rankings of a corpus; to built-in instructions, responses of the model, ranked."""
        items = super().training_items(corpus)
        return self._ranked(items) if corpus == BUILT_IN else items

    def evaluation_items(self, split: Split, source: Source[Ranking]) -> Iterable[Ranking]:
        """Return the rankings of dev or test, likewise."""
        items = super().evaluation_items(split, source)
        return items if self.config.file_of(split) else self._ranked(items)

    def _ranked(self, instructions: Iterable[Ranking]) -> Iterable[Ranking]:
        config = self.config
        self.log(f"{self.split}: drawing responses of {config.tokenizer_from} and ranking them")
        return rank_samples(config.tokenizer_from, instructions, seed=config.corpus_seed + SPLITS.index(self.split))


class RankingTask(ResponseTask[RankingBatch]):
    """A task on rankings."""

    counted_noun = "rankings"
    preparation: ClassVar[type[Preparation[Any, Any]]] = RankingPreparation

    def batches(self, store: Store, config: RunConfig, device: torch.device) -> RankingBatches:
        """Return batches of whole rankings."""
        self.require_window(store, config)
        return RankingBatches(store, **self.batch_options(config, device))


class RankingValidation:
    """The loss of the dev pairs, the share of them in the right order, and the mean difference of their rewards."""

    def __init__(
        self, objective: Callable[[], PreferenceObjective], batches: RankingBatches, distributed: DistributedContext
    ) -> None:
        self._objective, self._batches, self._distributed = objective, batches, distributed

    def __call__(self, should_stop: Callable[[], bool] = lambda: False) -> Validation | None:
        """Validate once; None, on all ranks, if ``should_stop`` interrupted any of them."""
        if self._distributed.all_gather(torch.tensor([float(should_stop())])).any():
            return None
        margins_P = margins_of_pairs(self._objective(), self._batches)
        return Validation(pair_score(margins_P).loss, scores_of_pairs(margins_P), is_of_tokens=False)


def scores_of_pairs(margins_P: Tensor) -> dict[str, Score]:
    """Return the scores of a validation on pairs (``PAIR_SCORES``)."""
    return {"accuracy": Score(float((margins_P > 0).double().mean())), "margin": Score(float(margins_P.mean()))}


class RewardModelling(RankingTask):
    """A reward model: a language model with a scalar output at the last token."""

    name = used_as = "reward"
    progress_verb = "rating"
    usage = CardUsage(
        "rating responses", "generate RESPONSE_MODEL --best-of 8 --reward-model", "RewardModel.load(folder).rate([...])"
    )
    is_of_tokens = False
    flop_tokens = "source"
    reads = frozenset({"alignment.centring"})
    own_model: ClassVar[Mapping[str, str]] = {"output": "scalar"}

    def validated_scores(self, config: RunConfig) -> tuple[str, ...]:
        """Return the names of the scores of a validation."""
        return PAIR_SCORES

    def objective(self, model: nn.Module, config: RunConfig) -> RewardObjective:
        """Return the binary classification of all pairs of a ranking."""
        return RewardObjective(model, centring=config.alignment.centring)

    def validator(
        self, model: Callable[[], nn.Module], prepared: Prepared, config: RunConfig, **on: Unpack[Processes]
    ) -> RankingValidation | None:
        """Return the validation: accuracy on the pairs of dev."""
        if prepared.dev is None:
            return None
        return RankingValidation(
            lambda: RewardObjective(model()),
            RankingBatches(prepared.dev, max_tokens=config.training.max_tokens_per_batch, seed=0),
            on.get("distributed") or DistributedContext(),
        )

    def start_model(self, model: nn.Module, prepared: Prepared, config: RunConfig) -> None:
        """Give the rewards of some training responses mean 0 and standard deviation 1. Ziegler et al. (2019)."""
        assert isinstance(model, RewardLM)
        _normalise(model, prepared, config)

    def postprocess_weights(
        self, weights: Mapping[str, Tensor], prepared: Prepared, config: RunConfig, device: torch.device
    ) -> Mapping[str, Tensor]:
        """Normalise the rewards again. Ziegler et al. (2019)."""
        model = make_model(config.model).to(device)
        assert isinstance(model, RewardLM)
        load_weights(model, weights, where=prepared.folder)
        _normalise(model, prepared, config)
        return {name: weight.cpu() for name, weight in weights_of(model).items()}

    def evaluate(
        self, model_folder: Path, prepared: Prepared, split: Split, **options: Unpack[EvaluationOptions]
    ) -> PairScore:
        """Return accuracy and calibration on the pairs of dev or test."""
        model = self.load(model_folder, device=options["device"]).model
        store = self.split_store(prepared, split)
        batches = RankingBatches(store, max_tokens=max(8192, int(ranking_tokens(store).max())), seed=0)
        return pair_score(margins_of_pairs(RewardObjective(model), batches))

    def score_lines(self, scores: Any, config: RunConfig) -> Sequence[str]:
        """Return the scores for the model card."""
        return [
            f"- pairs of responses in the right order: {scores.accuracy:.1%} of {scores.pairs:,}",
            f"- expected calibration error of the probability of the better one: {scores.calibration_error:.3f}",
            f"- loss: {scores.loss:.3f} nats per pair (guessing: {math.log(2):.3f})",
        ]


@torch.no_grad()
def _normalise(model: RewardLM, prepared: Prepared, config: RunConfig) -> None:
    is_training = model.training
    model.eval()
    batches = RankingBatches(
        prepared.train, max_tokens=config.training.max_tokens_per_batch, seed=0, weights=config.data.weights
    )
    objective, rewards, n_rankings = RewardObjective(model), list[Tensor](), 0
    for index in range(batches.n_batches(0)):
        batch = batches.batch(0, index)
        rewards.append(objective.scores(batch))
        n_rankings += len(batch.sizes)
        if n_rankings >= N_NORMALISING:
            break
    model.normalise(torch.cat(rewards))
    model.train(is_training)


register(RewardModelling())
