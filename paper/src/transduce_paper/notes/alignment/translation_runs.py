"""The runs of best-of-n for translation: a translator, a language model that reads pairs, and a reward model.

The translator is the one of all training pairs from scratch in the part on pre-training. The others are those of
``alignment/translation-reader`` and ``translation-reward.toml``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from transduce.config import Split
from transduce.corpora import Ranking
from transduce.files import write_lines
from transduce.inference import RankedCounts, Translator, ranked_translations, sampling_like
from transduce.recipes import preset, with_settings
from transduce.text import normalise
from transduce_paper.experiments import Experiments
from transduce_paper.notes.alignment.pipeline import MODEL, TEST
from transduce_paper.notes.pretraining import translation as pretraining
from transduce_paper.run_records import Experiment

__all__ = [
    "N_RANKED", "READER", "REWARD", "TEMPERATURES", "reader_experiment", "reward_experiment", "translator_experiment",
]  # fmt: skip

N_RANKED, N_SAMPLES = 10_000, 4  # training sources with rankings, draws of each
TEMPERATURES = (1.0, 0.5)  # each draws the translations of as many of these sources
SPLITS: tuple[Split, ...] = ("train", "dev")
SHARED = (*MODEL, "model.p_drop=0.1", "data.corpus=files", "data.max_length=128")
READER = (
    *SHARED, "data.task=sft", "data.vocab_size=8000", "training.max_updates=2500", "training.max_tokens_per_batch=2048",
    "training.optimiser=muon", "training.warmup_steps=250", "training.lr_factor=0.4", "training.decay=cosine",
    "training.eps_ls=0.0", "training.validate_every_updates=500", "training.checkpoint_every_updates=250",
)  # fmt: skip
REWARD = (
    *SHARED, "data.task=reward", "training.max_updates=700", "training.max_tokens_per_batch=4096",
    "training.warmup_steps=50", "training.lr_factor=0.05", "training.decay=linear",
    "training.validate_every_updates=100", "training.checkpoint_every_updates=100",
)  # fmt: skip


def translator_experiment(experiments: Experiments) -> Experiment:
    """Return the run of the translator."""
    n_pairs = max(pretraining.UPDATES)
    return pretraining.translator_experiment(experiments, n_pairs, 1, start="scratch")


def reader_experiment(experiments: Experiments, *, needs_text: bool = False) -> Experiment:
    """Return the run of the language model that reads pairs.

    Its files are written unless the run has a record already; ``needs_text``: even then, since its model may have to
    be trained again.
    """
    experiment = _experiment(experiments, "reader", READER)
    if experiments.record_path(experiment).exists() and not needs_text:
        return experiment
    translator = translator_experiment(experiments)
    folder = experiments.work / "rankings" / translator.name
    paths = {split: folder / f"{split}-pairs.tsv" for split in SPLITS}
    for split, path in paths.items():
        if not path.exists():
            pairs = experiments.pairs(translator, split)
            _write(path, (f"{normalise(src)}\t{normalise(tgt)}" for src, tgt in pairs))
    return _reading(experiment, paths)


def reward_experiment(experiments: Experiments, *, needs_text: bool = False) -> Experiment:
    """Return the run of the reward model; the rankings are made as the files of ``reader_experiment`` are."""
    experiment = replace(
        _experiment(experiments, "reward", REWARD),
        starts_from=reader_experiment(experiments, needs_text=needs_text),
    )
    if experiments.record_path(experiment).exists() and not needs_text:
        return experiment
    translator = translator_experiment(experiments)
    weights = experiments.run(translator).weights_sha256[:12]
    folder = experiments.work / "rankings" / f"{translator.name}-{weights}"
    paths = {split: folder / f"{split}.jsonl" for split in SPLITS}
    for split, path in paths.items():
        if not path.exists():
            rankings = _ranked(experiments, translator, list(islice(experiments.pairs(translator, split), N_RANKED)))
            _write(path, (json.dumps({"prompt": each.prompt, "responses": each.responses}) for each in rankings))
    return _reading(experiment, paths)


def _ranked(experiments: Experiments, translator: Experiment, pairs: Sequence[tuple[str, str]]) -> Iterator[Ranking]:
    """Rank draws of each temperature for an equal part of the pairs, as ``transduce rank`` does."""
    model = Translator.load(experiments.model_folder(translator), device=experiments.device)
    experiments.log(f"{translator.name}: translating {len(pairs):,} sentences {N_SAMPLES} times and ranking them")
    for number, temperature in enumerate(TEMPERATURES):
        part = pairs[number :: len(TEMPERATURES)]
        search = sampling_like(model.search, seed=1, temperature=temperature)
        yield from ranked_translations(model, part, RankedCounts(), n=N_SAMPLES, search=search)


def _experiment(experiments: Experiments, kind: str, settings: Sequence[str]) -> Experiment:
    config = with_settings(preset("tiny"), settings)
    test = (*TEST, "data.corpus=files")
    return experiments.experiment(f"alignment-translation-{kind}-seed1", config, test=test)


def _reading(experiment: Experiment, paths: dict[Split, Path]) -> Experiment:
    named = [f"data.{split}_prompts={json.dumps(str(path))}" for split, path in paths.items()]
    return replace(experiment, config=with_settings(experiment.config, named))


def _write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, lines)
