"""What pre-training on free text is worth for a translator, by the number of its training pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import mean

from transduce.paper.experiments import Experiment, Experiments, RunRecord, machines
from transduce.paper.intervals import Interval, interval_of_difference
from transduce.paper.notes.study import Study
from transduce.paper.report import Cell, Table
from transduce.recipes import preset, with_settings

__all__ = ["SHORT", "pretraining_experiment", "study_translation", "translator_experiment"]

UPDATES = {1_000: 300, 5_000: 600, 29_000: 1_500}  # by training pairs
SEEDS = (1, 2)
MODEL = (
    "model.n_encoder_layers=4", "model.n_decoder_layers=2", "model.d_model=256", "model.d_ff=1024", "model.n_heads=4",
    "model.d_k=64", "model.d_v=64", "model.norm=pre", "training.eps_ls=0.1", "training.precision=bf16",
    "training.lr_factor=0.35",
)  # fmt: skip
SHORT = (
    "model.n_encoder_layers=1", "model.n_decoder_layers=1", "model.d_model=32", "model.d_ff=32", "model.n_heads=2",
    "model.d_k=16", "model.d_v=16",
)  # fmt: skip
ON_FREE_TEXT = (
    "model.p_drop=0.1", "data.task=span-corruption", "data.corpus=newstest", "data.language=both",
    "data.vocab_size=8000", "data.max_length=128", "training.max_updates=2000", "training.max_tokens_per_batch=4096",
    "training.warmup_steps=200", "training.eps_ls=0.0", "training.clip_norm=1.0", "training.decay=cosine",
    "training.validate_every_updates=500", "training.checkpoint_every_updates=250", "training.average_last=1",
)  # fmt: skip
ON_PAIRS = (
    "model.p_drop=0.2", "data.corpus=multi30k", "training.max_tokens_per_batch=2048", "training.warmup_steps=150",
    "training.decay=linear", "training.checkpoint_every_updates=50", "training.average_last=3",
)  # fmt: skip

ABOUT = """\
### Translation from few pairs

{finding}

A Transformer of 4 + 2 layers of width 256 is trained on missing spans (T5's task) of English and German news, read as
unrelated texts ({n_updates:,} updates, {minutes:.0f} minutes; perplexity per target {perplexity:.1f}). Then it learns
to translate from the first pairs of Multi30k, and so does a model with random weights, for as many updates; both have
the vocabulary of the news. Mean of the seeds {seeds}; BLEU on {test_text}; ± is half of the 95 % interval of a
difference, by Student's t and the standard deviation pooled over the pairs of seeds. {machines}."""


def pretraining_experiment(experiments: Experiments, *, is_short: bool = False) -> Experiment:
    """Return the run on missing spans of free text."""
    config = with_settings(preset("tiny"), [*MODEL, *ON_FREE_TEXT])
    name = f"pretraining-{'short-' if is_short else ''}spans-seed1"
    return Experiment(name, with_settings(experiments.shortened(config), SHORT) if is_short else config)


def translator_experiment(
    experiments: Experiments, n_pairs: int, seed: int, *, is_pretrained: bool, is_short: bool = False
) -> Experiment:
    """Return the run of a translator on the first pairs of the captions, from scratch or from the run on spans."""
    settings = [*MODEL, *ON_PAIRS, f"training.seed={seed}", f"training.max_updates={UPDATES[n_pairs]}"]
    settings += [f"training.validate_every_updates={UPDATES[n_pairs]}", f"data.max_pairs={n_pairs}"]
    config = with_settings(preset("tiny"), settings)
    start = pretraining_experiment(experiments, is_short=is_short)
    kind = "pretrained" if is_pretrained else "scratch"
    name = f"pretraining-{'short-' if is_short else ''}{n_pairs}-pairs-{kind}-seed{seed}"
    config = with_settings(experiments.shortened(config), SHORT) if is_short else config
    if is_pretrained:
        return Experiment(name, config, starts_from=start)
    return Experiment(name, config, tokenizer_of=start)


def study_translation(experiments: Experiments, *, is_short: bool) -> Study:
    """Train both translators for each number of pairs, or read their records."""
    start = experiments.run(pretraining_experiment(experiments, is_short=is_short))
    all_n_pairs = tuple(UPDATES)[: 1 if is_short else None]
    runs = {
        (n_pairs, is_pretrained): [
            experiments.run(
                translator_experiment(experiments, n_pairs, seed, is_pretrained=is_pretrained, is_short=is_short)
            )
            for seed in SEEDS
        ]
        for n_pairs in all_n_pairs
        for is_pretrained in (False, True)
    }
    bleus = {key: [_bleu(record) for record in records] for key, records in runs.items()}
    gains = {
        n_pairs: interval_of_difference(bleus[n_pairs, True], bleus[n_pairs, False], bleus.values())
        for n_pairs in all_n_pairs
    }
    summary = "pre-training on missing spans changes BLEU by " + ", ".join(
        f"{gain} with {n_pairs:,} pairs" for n_pairs, gain in gains.items()
    )
    about = ABOUT.format(
        finding=f"{summary[0].upper()}{summary[1:]}.",
        n_updates=start.updates,
        minutes=start.minutes,
        perplexity=start.dev_perplexity,
        seeds=" and ".join(map(str, SEEDS)),
        test_text=runs[all_n_pairs[-1], True][0].test_text,
        machines=machines(chain([start], *runs.values())),
    )
    return Study(summary, (about, _table(runs, bleus, gains)))


def _bleu(record: RunRecord) -> float:
    assert record.test_scores is not None
    return float(record.test_scores["sacrebleu"]["score"])


Key = tuple[int, bool]  # number of pairs, whether pre-trained


def _table(
    runs: Mapping[Key, Sequence[RunRecord]], bleus: Mapping[Key, Sequence[float]], gains: Mapping[int, Interval]
) -> Table:
    columns = (
        "pairs", "updates", "minutes", "BLEU, from scratch", "BLEU, pre-trained", "difference", "±",
        "dev PPL, from scratch", "dev PPL, pre-trained",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for n_pairs, gain in gains.items():
        scratch, pretrained = (runs[n_pairs, is_pretrained] for is_pretrained in (False, True))
        rows.append(
            (
                n_pairs, scratch[0].updates, mean(record.minutes for record in (*scratch, *pretrained)),
                mean(bleus[n_pairs, False]), mean(bleus[n_pairs, True]), gain.difference, gain.half_width,
                mean(record.dev_perplexity for record in scratch),
                mean(record.dev_perplexity for record in pretrained),
            )
        )  # fmt: skip
    formats = {"pairs": ",", "updates": ",", "minutes": ".1f", "difference": "+.2f"}
    return Table("-pretraining-translation", columns, tuple(rows), formats=dict.fromkeys(columns, ".2f") | formats)
