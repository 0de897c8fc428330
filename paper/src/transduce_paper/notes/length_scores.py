"""BLEU by source length of LSTM translation models with and without attention, all else equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import TypeAdapter

from transduce.corpora import ParallelText
from transduce.inference import Translator
from transduce.metrics import sacrebleu_score
from transduce.recipes import with_settings
from transduce_paper.experiments import Experiments
from transduce_paper.measurement_cache import validated
from transduce_paper.run_records import Experiment
from transduce_paper.table2.systems import config_at_scale

__all__ = ["KINDS", "Attention", "BinScore", "length_bins", "length_scores", "recurrence_experiment"]

Attention = Literal["additive", "none"]
KINDS: tuple[Attention, ...] = get_args(Attention)
N_BINS = 5
UPDATES_AT_CPU_SCALE = 2_250  # a quarter of Table 2's
WHAT = "source_length"  # name of the measurement beside the record


@dataclass(frozen=True, slots=True)
class BinScore:
    """BLEU on the test sentences of a range of source lengths."""

    shortest: int  # words of the source
    longest: int
    n_sentences: int
    bleu: float  # sacreBLEU
    signature: str

    @property
    def name(self) -> str:
        """Return the range as tables show it."""
        return f"{self.shortest} to {self.longest}"


def recurrence_experiment(experiments: Experiments, attention: Attention, seed: int) -> Experiment:
    """Return the run of Table 2's recurrent system with or without attention, and with a seed.

    Both have the same number of layers, that of Table 2 with attention.
    """
    config = config_at_scale("GNMT-like (LSTM, additive attention)", experiments.scale, seed=seed)
    settings = [f"model.attention={attention}"]
    if experiments.scale in ("test", "cpu"):
        settings += [
            f"training.max_updates={UPDATES_AT_CPU_SCALE}",
            f"training.validate_every_updates={UPDATES_AT_CPU_SCALE}",
            "training.validation_bleu=false",
        ]
    name = "attention" if attention == "additive" else "none"
    return experiments.experiment(
        f"recurrence-lstm-{name}-seed{seed}",
        with_settings(config, settings),
        test=("model.n_encoder_layers=1", "model.n_decoder_layers=1"),
    )


def length_scores(experiments: Experiments, experiment: Experiment) -> tuple[BinScore, ...]:
    """Return the BLEU of an experiment's model in each bin of the test text, cached beside its record.

    Raises DataError if the cached file is damaged.
    """

    def measure(model_folder: Path) -> list[dict[str, Any]]:
        translator = Translator.load(model_folder, device=experiments.device)
        pairs = list(ParallelText(experiment.config.data, experiments.data_folder).of("test"))
        translations = translator.translate([source for source, _ in pairs], split=False)
        return [asdict(score) for score in _scores(pairs, translations)]

    measured = experiments.cached_measurement(experiment, WHAT, measure, settings={"n_bins": N_BINS})
    return validated(TypeAdapter(tuple[BinScore, ...]), measured, where=f"{experiment.name}: the cached BLEU by length")


def _scores(pairs: Sequence[tuple[str, str]], translations: Sequence[str]) -> list[BinScore]:
    lengths = [len(source.split()) for source, _ in pairs]
    scores = []
    for shortest, longest in length_bins(lengths, N_BINS):
        chosen = [index for index, length in enumerate(lengths) if shortest <= length <= longest]
        score = sacrebleu_score([translations[index] for index in chosen], [pairs[index][1] for index in chosen])
        scores.append(BinScore(shortest, longest, len(chosen), score.score, score.signature))
    return scores


def length_bins(lengths: Sequence[int], n_bins: int) -> list[tuple[int, int]]:
    """Return ranges of lengths with about equally many sentences; fewer than ``n_bins`` if many lengths are equal.

    >>> length_bins([3, 4, 4, 5, 9, 12], 3)
    [(3, 3), (4, 8), (9, 12)]
    """
    in_order = sorted(lengths)
    starts = sorted({in_order[number * len(in_order) // n_bins] for number in range(n_bins)})
    return [(start, after - 1) for start, after in pairwise([*starts, in_order[-1] + 1])]
