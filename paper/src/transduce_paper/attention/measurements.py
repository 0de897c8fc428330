"""Measurements of a model's heads, cached beside the record of its run, so that figures 3 to 5 need no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from transduce.config import Split
from transduce.corpora import ParallelText
from transduce.inference import Translator
from transduce_paper.attention.heads import HeadNumbers, head_numbers
from transduce_paper.attention.word_attention import attention_between_words
from transduce_paper.experiments import Experiments
from transduce_paper.measurement_cache import validated
from transduce_paper.run_records import Experiment

__all__ = ["measured", "n_sentences", "n_trees", "numbers_of_heads", "texts", "with_one_model"]

T = TypeVar("T")


def n_sentences(experiments: Experiments) -> int:
    """Return the number of dev, and of test, sentences for statistics of heads."""
    return experiments.pick(1000, test=60)


def n_trees(experiments: Experiments) -> int:
    """Return the number of sentences of the grammar for choosing heads, and for measuring them."""
    return experiments.pick(500, test=60)


def measured(
    experiments: Experiments,
    experiment: Experiment,
    what: str,
    kind: TypeAdapter[list[T]],
    measure: Callable[[Translator], list[T]],
    *,
    settings: Mapping[str, int | str],
) -> list[T]:
    """Return ``measure(translator)`` of an experiment's model, cached; ``kind`` converts it to JSON and back.

    Raises DataError if the cached file is damaged.
    """

    def as_json(model_folder: Path) -> list[dict[str, Any]]:
        translator = Translator.load(model_folder, device=experiments.device)
        tables: list[dict[str, Any]] = kind.dump_python(measure(translator), mode="json")
        return tables

    cached = experiments.cached_measurement(experiment, what, as_json, settings=settings)
    return validated(kind, cached, where=f"{experiment.name}.{what}.json")


def numbers_of_heads(experiments: Experiments, experiment: Experiment) -> list[HeadNumbers]:
    """Return the statistics of all heads over dev sentences, and as the last those of uniform attention."""
    n = n_sentences(experiments)

    def measure(translator: Translator) -> list[HeadNumbers]:
        return head_numbers(attention_between_words(translator, texts(experiments, experiment, "dev", n)))

    return measured(
        experiments, experiment, "heads", TypeAdapter(list[HeadNumbers]), measure, settings={"n_sentences": n}
    )


def texts(experiments: Experiments, experiment: Experiment, split: Split, n: int) -> tuple[str, ...]:
    """Return the first ``n`` source sentences of the dev or test text of an experiment."""
    pairs = ParallelText(experiment.config.data, experiments.data_folder).of(split)
    return tuple(islice((source for source, _ in pairs if source.strip()), n))


def with_one_model(experiments: Experiments, experiment: Experiment, collect: Callable[[], T]) -> T:
    """Return ``collect()``, all of whose measurements belong to the same model.

    If only a part is cached and the model is lost, measuring the rest trains another model. Then it collects again.
    """
    while True:
        weights = experiments.run(experiment).weights_sha256
        collected = collect()
        if experiments.run(experiment).weights_sha256 == weights:
            return collected
