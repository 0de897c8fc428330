"""Test of section 3.5's hypothesis that sinusoids may extrapolate to sentences longer than those of training.

Two models of the same size, one with sinusoids, one with learned positions, are trained on short pairs and evaluated on
pairs of all lengths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from transduce.config import DataConfig, RunConfig, TrainingConfig, TransformerConfig
from transduce.corpora import generate_pairs
from transduce.errors import DataError
from transduce.inference import Translator, log_probabilities
from transduce.metrics import perplexity, sacrebleu_score
from transduce.text import Tokenizers, normalise
from transduce_paper.experiments import Experiments
from transduce_paper.run_records import Experiment

__all__ = [
    "CLASSES", "MAX_TRAINED", "ClassScores", "LengthClass", "Positions", "by_length", "experiment", "pairs_of_classes",
]  # fmt: skip

Positions = Literal["sinusoidal", "learned"]
Pair = tuple[str, str]

MAX_TRAINED = 12  # tokens with EOS, on either side
N_IN_CLASS, N_TEST = 200, 8000  # pairs per class, and pairs of all lengths from which they are taken
TEST = (
    "model.d_model=32", "model.d_ff=64", "model.d_k=8", "model.d_v=8", "data.n_pairs=1000", "data.vocab_size=1000",
    "data.max_length=60", "search.max_extra_tokens=2",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LengthClass:
    """A range of pair lengths: tokens of the longer side, with EOS."""

    shortest: int
    longest: int

    def __str__(self) -> str:
        """Return the range as tables show it."""
        return f"{self.shortest} to {self.longest}"


CLASSES = tuple(LengthClass(*ends) for ends in ((1, MAX_TRAINED), (13, 15), (16, 18), (19, 21), (22, 30)))


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Scores of a model on the pairs of one length class."""

    sentences: int
    bleu: float  # sacreBLEU
    signature: str
    perplexity: float  # per token of the references, not smoothed


def experiment(experiments: Experiments, positions: Positions) -> Experiment:
    """Return a two-minute run of a small model on pairs of at most ``MAX_TRAINED`` tokens of the built-in corpus."""
    config = RunConfig(
        model=TransformerConfig(
            n_encoder_layers=2, n_decoder_layers=2, d_model=128, d_ff=256, n_heads=4, d_k=32, d_v=32, p_drop=0.0,
            positions=positions, n_positions=128,
        ),
        data=DataConfig(corpus="grammar", n_pairs=40_000, vocab_size=4000, max_length=MAX_TRAINED),
        training=TrainingConfig(
            max_updates=1000, max_tokens_per_batch=1500, warmup_steps=200, lr_factor=0.4, validate_every_updates=1000,
            validation_bleu=False, checkpoint_every_updates=25,
        ),
    )  # fmt: skip
    return experiments.experiment(f"extrapolation-{positions}", config, test=TEST)


def by_length(experiments: Experiments, experiment: Experiment) -> tuple[ClassScores, ...]:
    """Return the scores of an experiment's model on each of ``CLASSES``, cached beside its record.

    Raises DataError if the cached file is damaged.
    """
    n_pairs, n_in_class = experiments.pick((N_TEST, N_IN_CLASS), test=(300, 2))

    def measure(model_folder: Path) -> list[dict[str, Any]]:
        translator = Translator.load(model_folder, device=experiments.device)
        by_class = pairs_of_classes(translator.tokenizers, n_pairs=n_pairs, n_in_class=n_in_class)
        return [asdict(_scores_of(translator, pairs)) for pairs in by_class]

    settings = {"n_pairs": n_pairs, "n_in_class": n_in_class}
    measured = experiments.cached_measurement(experiment, "by_length", measure, settings=settings)
    try:
        return tuple(ClassScores(**values) for values in measured)
    except TypeError as error:
        raise DataError(f"{experiment.name}: the cached scores by length are not of this version ({error})") from error


def pairs_of_classes(tokenizers: Tokenizers, *, n_pairs: int, n_in_class: int) -> list[list[Pair]]:
    """Return the first pairs of each of ``CLASSES`` among ``n_pairs`` test pairs of the built-in corpus."""
    pairs = [(pair.en, pair.de) for pair in generate_pairs("test", n_pairs=n_pairs, seed=1)]
    lengths = [max(both) for both in zip(*_n_tokens(tokenizers, pairs), strict=True)]
    return [
        list(
            islice(
                (pair for pair, n in zip(pairs, lengths, strict=True) if each.shortest <= n <= each.longest), n_in_class
            )
        )
        for each in CLASSES
    ]


def _n_tokens(tokenizers: Tokenizers, pairs: Sequence[Pair]) -> tuple[list[int], list[int]]:
    """Return the numbers of source and of target tokens of the pairs, EOS included."""
    sources = tokenizers.src.encode_batch([normalise(source) for source, _ in pairs])
    targets = tokenizers.tgt.encode_batch([normalise(target) for _, target in pairs])
    return [len(ids) + 1 for ids in sources], [len(ids) + 1 for ids in targets]


def _scores_of(translator: Translator, pairs: Sequence[Pair]) -> ClassScores:
    translations = translator.translate([source for source, _ in pairs], split=False)
    score = sacrebleu_score(translations, [target for _, target in pairs])
    nats, n_tokens = -math.fsum(log_probabilities(translator, pairs)), sum(_n_tokens(translator.tokenizers, pairs)[1])
    return ClassScores(len(pairs), score.score, score.signature, perplexity(nats, n_tokens))
