"""What pre-training on free text is worth for a translator, by the number of its training pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Literal

from transduce.recipes import preset, with_settings
from transduce_paper.experiments import Experiments
from transduce_paper.intervals import NO_CELLS, Interval, interval_of_difference
from transduce_paper.report import Cell, Section, Table, sentence
from transduce_paper.run_records import Experiment, RunRecord, about_runs, machines

__all__ = ["STARTS", "TEST", "UPDATES", "spans_experiment", "study_translation", "translator_experiment"]

Text = Literal["news", "captions"]  # without translations, for pre-training
Start = Literal["scratch", "news", "captions"]  # of a translator: random weights, or pre-training on such a text

STARTS: Mapping[Start, str] = {"scratch": "from scratch", "news": "from news", "captions": "from captions"}
UPDATES = {1_000: 300, 5_000: 600, 29_000: 1_500}  # by training pairs
SEEDS = {1_000: (1, 2), 5_000: (1, 2), 29_000: (1,)}
MODEL = (
    "model.n_encoder_layers=4", "model.n_decoder_layers=2", "model.d_model=256", "model.d_ff=1024", "model.n_heads=4",
    "model.d_k=64", "model.d_v=64", "model.norm=pre", "training.eps_ls=0.1", "training.precision=bf16",
    "training.lr_factor=0.35",
)  # fmt: skip
TEST = (
    "model.n_encoder_layers=1", "model.n_decoder_layers=1", "model.d_model=32", "model.d_ff=32", "model.n_heads=2",
    "model.d_k=16", "model.d_v=16",
)  # fmt: skip
# Without translations; the captions are those of all training pairs.
ON_NEWS = (
    "model.p_drop=0.1", "data.task=span-corruption", "data.corpus=newstest", "data.language=both",
    "data.vocab_size=8000", "data.max_length=128", "training.max_updates=2000", "training.max_tokens_per_batch=4096",
    "training.warmup_steps=200", "training.eps_ls=0.0", "training.clip_norm=1.0", "training.decay=cosine",
    "training.validate_every_updates=500", "training.checkpoint_every_updates=250", "training.average_last=1",
)  # fmt: skip
ON_CAPTIONS = (
    *ON_NEWS, "data.corpus=multi30k", "data.max_length=64", "training.max_updates=1500", "training.optimiser=muon",
    "training.warmup_steps=150", "training.lr_factor=0.6",
)  # fmt: skip
ON_PAIRS = (
    "model.p_drop=0.2", "data.corpus=multi30k", "training.max_tokens_per_batch=2048", "training.warmup_steps=150",
    "training.decay=linear", "training.checkpoint_every_updates=50", "training.average_last=3",
)  # fmt: skip

ABOUT = """\
{finding}

A Transformer of 4 + 2 layers of width 256 first learns missing spans (T5's task) of English and German text, read as
unrelated texts: of news ({news.updates:,} updates with Adam, {news.minutes:.0f} minutes), or of the captions of
Multi30k, unpaired ({captions.updates:,} updates with Muon, {captions.minutes:.0f} minutes). Then it learns to translate
from the first pairs of Multi30k, and so does a model with random weights, for as many updates of Adam with the same
learning rates; all have the vocabulary of the news. Mean of the seeds 1 and 2, with {most:,} pairs of seed 1 alone;
BLEU on {test_text}; ± is half of the 95 % interval of a difference, by Student's t and the standard deviation pooled
over the pairs of seeds. {about_runs} {machines}.

{reason}"""

REASON = """\
Why pre-training on the news harms: at Adam's learning rate, which suits translation, the encoder collapsed while it
learned spans. Its states became the same at all positions, the decoder attended to all of them equally, and the
training on pairs did not undo it. Muon, whose updates change all directions of a matrix alike, avoids this;
notebook/trials.md has the measurements."""


def spans_experiment(experiments: Experiments, text: Text) -> Experiment:
    """Return the run on missing spans of a text."""
    config = with_settings(preset("tiny"), [*MODEL, *(ON_NEWS if text == "news" else ON_CAPTIONS)])
    vocabulary = None if text == "news" else spans_experiment(experiments, "news")
    return experiments.experiment(f"pretraining-spans-{text}-seed1", config, test=TEST, tokenizer_of=vocabulary)


def translator_experiment(experiments: Experiments, n_pairs: int, seed: int, *, start: Start) -> Experiment:
    """Return the run of a translator on the first pairs of the captions."""
    settings = [*MODEL, *ON_PAIRS, f"training.seed={seed}", f"training.max_updates={UPDATES[n_pairs]}"]
    settings += [f"training.validate_every_updates={UPDATES[n_pairs]}", f"data.max_pairs={n_pairs}"]
    config = with_settings(preset("tiny"), settings)
    name = f"pretraining-{n_pairs}-pairs-{start}-seed{seed}"
    if start == "scratch":
        return experiments.experiment(name, config, test=TEST, tokenizer_of=spans_experiment(experiments, "news"))
    return experiments.experiment(name, config, test=TEST, starts_from=spans_experiment(experiments, start))


Runs = Mapping[int, Mapping[Start, Sequence[RunRecord]]]  # by the number of pairs and the start: a record for each seed


def study_translation(experiments: Experiments) -> Section:
    """Train all translators for each number of pairs, or read their records."""
    texts: tuple[Text, ...] = ("news", "captions")
    news, captions = (experiments.run(spans_experiment(experiments, text)) for text in texts)
    runs: Runs = {
        n_pairs: {
            start: [
                experiments.run(translator_experiment(experiments, n_pairs, seed, start=start))
                for seed in SEEDS[n_pairs]
            ]
            for start in STARTS
        }
        for n_pairs in tuple(UPDATES)[: experiments.pick(None, test=1)]
    }
    groups = [[record.bleu for record in records] for of_size in runs.values() for records in of_size.values()]
    gains = {
        (n_pairs, text): interval_of_difference(
            [record.bleu for record in of_size[text]], [record.bleu for record in of_size["scratch"]], groups
        )
        for n_pairs, of_size in runs.items()
        for text in texts
    }
    fewest = runs[min(UPDATES)]
    without, with_captions = (mean(run.dev_perplexity for run in fewest[start]) for start in ("scratch", "captions"))
    remarks: Mapping[Text, str] = {
        "news": "the encoder had collapsed",
        "captions": f"perplexity with {min(UPDATES):,} pairs: {with_captions:.1f} instead of {without:.1f}",
    }
    summary = "; ".join(
        f"pre-training on missing spans of {text} changes BLEU by "
        + ", ".join(f"{gains[n_pairs, text]} with {n_pairs:,} pairs" for n_pairs in runs)
        + f" ({remarks[text]})"
        for text in texts
    )
    all_runs = [news, captions, *(run for each in runs.values() for records in each.values() for run in records)]
    about = ABOUT.format(
        finding=sentence(summary),
        news=news,
        captions=captions,
        most=max(UPDATES),
        test_text=runs[min(UPDATES)]["scratch"][0].test_text,
        about_runs=about_runs(all_runs),
        machines=machines(all_runs),
        reason=REASON,
    )
    return Section("Translation from few pairs", (about, _table(runs, gains)), summary=summary)


def _table(runs: Runs, gains: Mapping[tuple[int, Text], Interval]) -> Table:
    columns = (
        "pairs", "start", "updates", "seeds", "minutes each", "BLEU", "difference", "±", "dev PPL"
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for n_pairs, of_size in runs.items():
        for start, records in of_size.items():
            gain = None if start == "scratch" else gains[n_pairs, start]
            rows.append(
                (
                    n_pairs, STARTS[start], records[0].updates, len(records), mean(each.minutes for each in records),
                    mean(each.bleu for each in records),
                    *(gain.cells if gain else NO_CELLS),
                    mean(each.dev_perplexity for each in records),
                )
            )  # fmt: skip
    formats = {"pairs": ",", "updates": ",", "minutes each": ".1f", "BLEU": ".2f", "difference": "+.2f", "±": ".2f"}
    return Table("-pretraining-translation", columns, tuple(rows), formats=formats | {"dev PPL": ".2f"})
