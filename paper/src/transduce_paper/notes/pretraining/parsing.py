"""What a masked language model is worth as the encoder of a parser."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

from transduce.config import Split
from transduce.recipes import preset, with_settings
from transduce_paper.experiments import Experiments
from transduce_paper.intervals import NO_CELLS, Interval, interval_of_difference
from transduce_paper.report import Cell, Section, Table
from transduce_paper.run_records import Experiment, RunRecord, about_runs, machines
from transduce_paper.table4.parsers import parser_at_scale

__all__ = ["encoder_experiment", "parser_experiment", "study_parsing"]

SEEDS = (1, 2)
SPLITS: tuple[Split, ...] = ("dev", "test")
# The encoder of Table 4's small parsers. Of the news alone a model of this size learns little more than the frequencies
# of words in as many updates; the captions, whose words are easier to guess from each other, set its attention going.
ENCODER = (
    "model.system=language-model", "model.is_causal=false", "model.n_layers=3", "model.d_model=128", "model.d_ff=512",
    "model.n_heads=4", "model.d_k=32", "model.d_v=32", "model.p_drop=0.1", "model.norm=pre", "model.n_positions=128",
    "data.task=masked-lm", "data.corpus={newstest=1.0, multi30k=1.0}", "data.language=en", "data.vocab_size=4000",
    "training.max_updates=5000", "training.max_tokens_per_batch=2048", "training.warmup_steps=200",
    "training.optimiser=muon", "training.lr_factor=0.4", "training.decay=cosine", "training.clip_norm=1.0",
    "training.eps_ls=0.0", "training.precision=bf16", "training.validate_every_updates=1000",
    "training.checkpoint_every_updates=500", "training.average_last=1",
)  # fmt: skip

ABOUT = """\
{finding}

The encoder of Table 4's parser (3 layers of width 128) is trained as a masked language model of English news
and captions ({n_updates:,} updates, {minutes:.0f} minutes), then the parser starts from it. The other parser has random
weights and the same vocabulary; seeds {seeds}, {parser_updates:,} updates of each, half of those of Table 4. The masked
model counts positions in tokens, the parser half of them in words, which makes the start harder. {about_runs}
{machines}."""


def encoder_experiment(experiments: Experiments) -> Experiment:
    """Return the run of the masked language model."""
    return experiments.experiment("pretraining-masked-encoder-seed1", with_settings(preset("tiny"), ENCODER))


def parser_experiment(experiments: Experiments, seed: int, *, is_pretrained: bool) -> Experiment:
    """Return the run of a parser, from scratch or from the masked language model."""
    config = parser_at_scale("gum", experiments.scale)
    n_updates = config.training.max_updates // 2
    config = with_settings(config, [f"training.max_updates={n_updates}", f"training.seed={seed}"])
    kind = "pretrained" if is_pretrained else "scratch"
    experiment = experiments.experiment(
        f"pretraining-parser-{kind}-seed{seed}", config, test=("data.subtree_substitution=0.0",)
    )
    start = encoder_experiment(experiments)
    return replace(experiment, starts_from=start) if is_pretrained else replace(experiment, tokenizer_of=start)


def study_parsing(experiments: Experiments) -> Section:
    """Train both parsers, or read their records."""
    start = experiments.run(encoder_experiment(experiments))
    runs = {
        is_pretrained: [
            experiments.run(parser_experiment(experiments, seed, is_pretrained=is_pretrained)) for seed in SEEDS
        ]
        for is_pretrained in (False, True)
    }
    gains: dict[Split, Interval] = {}
    for split in SPLITS:
        scratch, pretrained = ([_f1(record, split) for record in runs[kind]] for kind in (False, True))
        gains[split] = interval_of_difference(pretrained, scratch, [scratch, pretrained])
    text = runs[True][0].test_text
    summary = f"a masked encoder changes the F1 of a parser on {text} by {gains['test']}"
    about = ABOUT.format(
        finding=f"A masked encoder changes the F1 of a parser by {gains['test']} on {text}.",
        n_updates=start.updates,
        parser_updates=runs[True][0].updates,
        minutes=start.minutes,
        seeds=" and ".join(map(str, SEEDS)),
        about_runs=about_runs([start, *runs[False], *runs[True]]),
        machines=machines([start, *runs[False], *runs[True]]),
    )
    columns = ("parser", "minutes", "dev F1", "test F1", "test F1, difference", "±")
    rows: list[tuple[Cell, ...]] = []
    for is_pretrained, records in runs.items():
        gain = gains["test"] if is_pretrained else None
        rows.append(
            (
                "from the masked model" if is_pretrained else "from scratch",
                mean(record.minutes for record in records),
                *(mean(_f1(record, split) for record in records) for split in SPLITS),
                *(gain.cells if gain else NO_CELLS),
            )
        )
    formats = dict.fromkeys(columns, ".2f") | {"minutes": ".1f", "test F1, difference": "+.2f"}
    table = Table("-pretraining-parsing", columns, tuple(rows), formats=formats)
    return Section("Parsing from a masked encoder", (about, table), summary=summary)


def _f1(record: RunRecord, split: Split) -> float:
    scores = record.dev_scores if split == "dev" else record.test_scores
    assert scores is not None
    return float(scores["f1"])
