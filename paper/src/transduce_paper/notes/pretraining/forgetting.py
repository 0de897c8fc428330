"""What fine-tuning takes away: a translator of captions that learns help pages, and captions again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from transduce.corpora import BUILT_IN
from transduce.inference import Translator, evaluate, read_model_folder
from transduce.recipes import preset, with_settings
from transduce.runs import dev_perplexity
from transduce.tasks import open_prepared
from transduce_paper.experiments import Experiments
from transduce_paper.notes.pretraining.translation import TEST
from transduce_paper.report import Cell, Section, Table, sentence
from transduce_paper.run_records import Experiment, about_runs, machines

__all__ = ["STAGES", "forgetting_experiment", "study_forgetting"]

CAPTIONS, HELP = "multi30k", "libreoffice-help"
REPLAY = 0.2  # of the old corpus, in each epoch of the new one
SEEDS = (1, 2)
N_SENTENCES = 500  # of each dev set are translated


@dataclass(frozen=True, slots=True)
class Stage:
    """A training, and the one before it."""

    title: str
    corpus: str  # as in ``data.corpus``
    updates: int
    before: str | None  # key of the stage that it starts from


# By key, which is part of the record's name.
STAGES: Mapping[str, Stage] = {
    "captions": Stage("captions", f"{{{CAPTIONS}=1.0}}", 1000, None),
    "help": Stage("then help pages", f"{{{HELP}=1.0}}", 400, "captions"),
    "help-replay": Stage(
        "then help pages, with replay of captions", f"{{{HELP}=1.0, {CAPTIONS}={REPLAY}}}", 400, "captions"
    ),
    "back": Stage("then help pages, then captions", f"{{{CAPTIONS}=1.0}}", 200, "help"),
    "back-replay": Stage(
        "then help pages, then captions, with replay of help pages", f"{{{CAPTIONS}=1.0, {HELP}={REPLAY}}}", 200, "help"
    ),
}
SETTINGS = (
    "model.n_encoder_layers=3", "model.n_decoder_layers=3", "model.d_model=256", "model.d_ff=1024", "model.n_heads=4",
    "model.d_k=64", "model.d_v=64", "model.p_drop=0.1", "model.norm=pre", "data.vocab_size=8000",
    "training.max_tokens_per_batch=2048", "training.optimiser=muon", "training.warmup_steps=100",
    "training.lr_factor=0.4", "training.decay=linear", "training.precision=bf16",
    "training.checkpoint_every_updates=50", "training.average_last=1", "search.beam_size=4",
)  # fmt: skip

ABOUT = """\
{finding}

A translator of captions ({captions_updates:,} updates) is trained on help pages for {help_updates:,} updates, then on
captions again for {back_updates:,}. With *replay* an epoch also reads {replay:.0%} of the pairs of the other corpus.
All have the vocabulary of the captions. BLEU on the first {n:,} sentences of each dev set, and perplexity on all of
it; means of the seeds {seeds}. {about_runs} {machines}."""


def forgetting_experiment(experiments: Experiments, key: str, seed: int) -> Experiment:
    """Return the run of a stage."""
    stage = STAGES[key]
    settings = [*SETTINGS, f"data.corpus={stage.corpus}", f"training.max_updates={stage.updates}"]
    settings += [f"training.validate_every_updates={stage.updates}", f"training.seed={seed}"]
    config = with_settings(preset("tiny"), settings)
    before = None if stage.before is None else forgetting_experiment(experiments, stage.before, seed)
    return experiments.experiment(f"pretraining-forgetting-{key}-seed{seed}", config, test=TEST, starts_from=before)


def study_forgetting(experiments: Experiments) -> Section:
    """Train all stages, or read their records; score each on both corpora."""
    seeds = experiments.pick(SEEDS, test=SEEDS[:1])
    runs = {key: [forgetting_experiment(experiments, key, seed) for seed in seeds] for key in STAGES}
    records = {key: [experiments.run(each) for each in of_seeds] for key, of_seeds in runs.items()}
    corpora, n = experiments.pick(((CAPTIONS, HELP), N_SENTENCES), test=((BUILT_IN,), 3))
    scores = {
        key: [_scores(experiments, experiment, corpora, n) for experiment in of_seeds] for key, of_seeds in runs.items()
    }
    bleu = {
        key: {corpus: mean(of_seed[corpus]["bleu"] for of_seed in of_seeds) for corpus in corpora}
        for key, of_seeds in scores.items()
    }
    old = corpora[0]
    summary = (
        f"training on help pages takes BLEU on captions from {bleu['captions'][old]:.1f} to {bleu['help'][old]:.1f},"
        f" with replay to {bleu['help-replay'][old]:.1f}"
    )
    about = ABOUT.format(
        finding=sentence(summary),
        captions_updates=records["captions"][0].updates,
        help_updates=records["help"][0].updates,
        back_updates=records["back"][0].updates,
        replay=REPLAY,
        n=n,
        seeds=" and ".join(map(str, seeds)),
        about_runs=about_runs(chain(*records.values())),
        machines=machines(chain(*records.values())),
    )
    table = _table(scores, corpora, seeds)
    return Section("Fine-tuning on new text, and forgetting the old", (about, table), summary=summary)


def _scores(
    experiments: Experiments, experiment: Experiment, corpora: Sequence[str], n: int
) -> dict[str, dict[str, float]]:
    """Return BLEU and perplexity of a model on the dev set of each corpus."""

    def measure(folder: Path) -> list[dict[str, Any]]:
        return [{"corpus": corpus, **_scores_on(experiments, experiment, folder, corpus, n)} for corpus in corpora]

    rows = experiments.cached_measurement(experiment, "dev_sets", measure, settings={"sentences": n})
    return {row["corpus"]: row for row in rows}


def _scores_on(experiments: Experiments, experiment: Experiment, folder: Path, corpus: str, n: int) -> dict[str, float]:
    config = with_settings(experiment.config, [f"data.corpus={corpus}"])
    prepared = open_prepared(experiments.store_with_tokenizer_of(folder, config.data))
    text = prepared.text("dev")
    assert text is not None
    with torch.no_grad():
        perplexity = dev_perplexity(read_model_folder(folder, device=experiments.device).model, prepared, config)
    translator = Translator.load(folder, device=experiments.device)
    bleu = evaluate(translator, text[0][:n], text[1][:n]).scores.sacrebleu.score
    return {"perplexity": perplexity, "bleu": bleu}


def _table(
    scores: Mapping[str, Sequence[dict[str, dict[str, float]]]], corpora: Sequence[str], seeds: Sequence[int]
) -> Table:
    columns = [
        "training",
        *(f"BLEU, {corpus}, seed {seed}" for corpus in corpora for seed in seeds),
        *(f"PPL, {corpus}" for corpus in corpora),
    ]
    rows: list[tuple[Cell, ...]] = []
    for key, of_seeds in scores.items():
        rows.append(
            (
                STAGES[key].title,
                *(of_seed[corpus]["bleu"] for corpus in corpora for of_seed in of_seeds),
                *(mean(of_seed[corpus]["perplexity"] for of_seed in of_seeds) for corpus in corpora),
            )
        )
    return Table("-pretraining-forgetting", tuple(columns), tuple(rows), formats=dict.fromkeys(columns[1:], ".2f"))
