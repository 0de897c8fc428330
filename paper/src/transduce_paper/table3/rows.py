"""The runs of Table 3: each row at each scale, with its seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import chain
from operator import attrgetter, itemgetter
from statistics import mean
from typing import Any, assert_never

from transduce.config import RunConfig, nearest_name
from transduce.errors import ConfigError, quoted
from transduce.model import cost_of
from transduce.recipes import TABLE_3, with_settings
from transduce.training import peak_learning_rate
from transduce_paper.at_once import train_at_once
from transduce_paper.experiments import Experiments, Scale
from transduce_paper.printed import PRINTED
from transduce_paper.run_records import CONVERGED, Experiment, RunRecord, are_trained_to_the_end

__all__ = [
    "ROWS", "about_rates", "about_training", "learning_rate_description", "require_rows", "row_at_scale",
    "row_experiment", "row_experiments", "row_records", "rows_of_several_lengths", "runs_of_row", "runs_of_row_alone",
    "shorter_experiments",
]  # fmt: skip

ROWS = PRINTED.table3
# Section 6.2: no checkpoint averaging. Validation BLEU is off, so the minutes measure training alone.
AS_IN_SECTION_6_2 = ("training.average_last=1", "training.validation_bleu=false")

# Rows with several seeds give the interval of seed noise. With 4 seeds of one row an effect would have to exceed 3.6
# standard deviations, with 8 it is 2.5; with 3 of base and 2 of each of 4 rows it is 2.8.
N_SEEDS: Mapping[Scale, Mapping[str, int]] = {
    "test": {"base": 2},
    "cpu": {"base": 8},
    "hours": {"base": 3, "A-h1": 2, "C-d256": 2, "D-drop0": 2, "D-smooth0": 2},
    "gpu": {"base": 5},
    "paper": {"base": 8},
}
# A model that overfits has its best checkpoint while the rate is high. With fewer updates the rate is zero by then; of
# the runs of a seed the best counts.
SHORTER: Mapping[Scale, Mapping[str, Sequence[int]]] = {
    "hours": {"C-d1024": (12_000,), "D-drop0": (3_000, 6_000), "D-smooth0": (12_000,)},
}
N_FIRST_SEEDS = 3  # of several runs at once, those of other seeds of base come last
UPDATES_AT_CPU_SCALE, UPDATES_AT_GPU_SCALE = 1_500, 1_500
# The perplexity of base falls to 4.74, by 0.3 % over the last tenth; with 8,000 updates to 5.31, by 1.5 %.
UPDATES_AT_HOURS_SCALE = 24_000
# With so short a warm-up the paper's schedule would go up to 0.0031; this part of it is the paper's own peak, 0.0007.
LR_FACTOR_AT_GPU_SCALE = 0.224
N_VALIDATIONS_AT_GPU_SCALE = 20


def require_rows(names: Sequence[str]) -> None:
    """Raise ConfigError if a name is not that of a row of Table 3."""
    for name in names:
        if name not in ROWS:
            raise ConfigError(f"Table 3 has no row {quoted(name)}; {nearest_name(name, list(ROWS))}")


def row_records(
    experiments: Experiments,
    names: Sequence[str],
    *,
    jobs: int,
    runs_of: Callable[[Experiments, str], list[Experiment]] | None = None,
) -> dict[str, list[RunRecord]]:
    """Train or read rows, the first seed of all rows before the second of any.

    ``runs_of`` returns the runs of a row, by default all (``runs_of_row``). Where a row has shorter runs, the one of a
    seed with the lowest perplexity counts.
    """
    wanted = {name: (runs_of or runs_of_row)(experiments, name) for name in names}
    if jobs > 1:
        train_at_once(experiments, sorted(chain(*wanted.values()), key=_turn), jobs=jobs)
    in_turn = sorted(chain(*wanted.values()), key=lambda each: each.config.training.seed)
    records = {each.name: experiments.run(each) for each in in_turn}
    return {
        name: [
            min((records[each.name] for each in of_seed), key=attrgetter("dev_perplexity"))
            for of_seed in _by_seed(of_row)
        ]
        for name, of_row in wanted.items()
    }


def _by_seed(runs: Sequence[Experiment]) -> list[list[Experiment]]:
    """Return the runs of each seed."""
    by_seed = defaultdict[int, list[Experiment]](list)
    for each in runs:
        by_seed[each.config.training.seed].append(each)
    return list(by_seed.values())


def _turn(experiment: Experiment) -> tuple[bool, float]:
    """Return the sort key of one of several runs at once: the longest first, so that none is left alone at the end."""
    data, training = experiment.config.data, experiment.config.training
    model = experiment.config.model.with_vocabulary(data.vocab_size, data.vocab_size)
    return training.seed > N_FIRST_SEEDS, -training.max_updates * cost_of(model).flops_per_token


def row_experiments(experiments: Experiments, name: str) -> list[Experiment]:
    """Return the runs of a row, one for each of its seeds."""
    n_seeds = N_SEEDS[experiments.scale].get(name, 1)
    return [row_experiment(experiments, name, seed=seed) for seed in range(1, 1 + n_seeds)]


def runs_of_row(experiments: Experiments, name: str) -> list[Experiment]:
    """Return all runs of a row: of each seed, and of other lengths."""
    return [*row_experiments(experiments, name), *shorter_experiments(experiments, name)]


def runs_of_row_alone(experiments: Experiments, name: str) -> list[Experiment]:
    """Return the runs of a row without the rest of the table: of base all, whose seeds give the interval.

    Of other rows those of the first seed, and of the further seeds that are recorded, in all lengths.
    """
    first, *others = _by_seed(runs_of_row(experiments, name))
    further = [runs for runs in others if name == "base" or all(experiments.record_path(run).exists() for run in runs)]
    return [*first, *chain(*further)]


def rows_of_several_lengths(scale: Scale) -> set[str]:
    """Return the rows of which shorter runs are made as well."""
    return set(SHORTER.get(scale, {}))


def shorter_experiments(experiments: Experiments, name: str) -> list[Experiment]:
    """Return the runs of a row with fewer updates, for each seed; most rows have none."""
    shorter = []
    for experiment in row_experiments(experiments, name):
        for n_updates in SHORTER.get(experiments.scale, {}).get(name, ()):
            interval = n_updates * experiment.config.training.validate_every_updates // UPDATES_AT_HOURS_SCALE
            settings = [
                f"training.max_updates={n_updates}", f"training.validate_every_updates={interval}",
                f"training.checkpoint_every_updates={interval}",
            ]  # fmt: skip
            config = with_settings(experiment.config, settings)
            run_name = experiment.name.replace("-seed", f"-{n_updates}-updates-seed")
            shorter.append(experiments.experiment(run_name, config))
    return shorter


def row_at_scale(name: str, scale: Scale, *, seed: int = 1) -> RunConfig:
    """Return the run of a row at a scale.

    paper: the paper's own run; gpu: half its sizes on captions; hours: a quarter of its widths; cpu: an eighth,
    trained in minutes; test: as cpu, to be shortened.
    """
    row = with_settings(TABLE_3[name](), [f"training.seed={seed}", *AS_IN_SECTION_6_2])
    match scale:
        case "paper":
            return with_settings(row, ['data.corpus="wmt14-en-de"', "training.checkpoint_every_updates=1400"])
        case "gpu":
            return with_settings(row, _at_gpu_scale(row))
        case "hours":
            return with_settings(row, _at_hours_scale(row))
        case "cpu" | "test":
            return with_settings(row, _at_cpu_scale(row))
        case _:
            assert_never(scale)


def _at_gpu_scale(row: RunConfig) -> list[str]:
    """Use half the layers and half of each width, on captions; of a model that overfits, the best checkpoint counts."""
    interval = UPDATES_AT_GPU_SCALE // N_VALIDATIONS_AT_GPU_SCALE
    return [
        *_smaller(row, layers=2, widths=2), *_on_captions(UPDATES_AT_GPU_SCALE), "data.vocab_size=8000",
        "training.max_tokens_per_batch=8000", f"training.lr_factor={LR_FACTOR_AT_GPU_SCALE}",
        f"training.validate_every_updates={interval}", f"training.checkpoint_every_updates={interval}",
        "training.averaging=best", "training.keep_checkpoints=1",
    ]  # fmt: skip


def _at_hours_scale(row: RunConfig) -> list[str]:
    """Use half the layers and a quarter of each width, on captions; of a model that overfits, the best checkpoint."""
    return [
        *_smaller(row, layers=2, widths=4), *_on_captions(UPDATES_AT_HOURS_SCALE), "data.vocab_size=4000",
        "training.max_tokens_per_batch=1024", "training.warmup_steps=2000",
        "training.validate_every_updates=800", "training.checkpoint_every_updates=800",
        "training.averaging=best", "training.keep_checkpoints=1",
    ]  # fmt: skip


def _at_cpu_scale(row: RunConfig) -> list[str]:
    """Use half the layers, an eighth of each width and the same number of heads, on captions instead of news."""
    return [
        *_smaller(row, layers=2, widths=8),
        *_on_captions(UPDATES_AT_CPU_SCALE * row.training.max_updates // 100_000),
        "data.vocab_size=2000",
        "training.max_tokens_per_batch=3000",
        "training.checkpoint_every_updates=100",
    ]


def _smaller(row: RunConfig, *, layers: int, widths: int) -> list[str]:
    """Divide the numbers of layers and each width; the number of heads stays."""
    n_encoder, n_decoder = row.model.layer_counts
    return [
        *(f"model.{name}={getattr(row.model, name) // widths}" for name in ("d_model", "d_ff", "d_k", "d_v")),
        f"model.n_encoder_layers={n_encoder // layers}",
        f"model.n_decoder_layers={n_decoder // layers}",
    ]


def _on_captions(max_updates: int) -> list[str]:
    """Return the settings of a short run on captions.

    The learning rate decays linearly to zero. With the paper's schedule, still high after so few updates, the time at
    which a model learns to align would depend on the seed (at cpu scale, perplexity of base 14.6 to 17.8; with decay
    10.2 to 11.6).
    """
    return [
        "data.corpus=multi30k",
        f"training.max_updates={max_updates}",
        "training.warmup_steps=400",
        "training.decay=linear",
        f"training.validate_every_updates={max_updates}",
        "training.precision=bf16",
    ]


def row_experiment(experiments: Experiments, name: str, *, seed: int) -> Experiment:
    """Return the run of a row under the name of its record."""
    return experiments.experiment(f"table3-{name}-seed{seed}", row_at_scale(name, experiments.scale, seed=seed))


def learning_rate_description(training: Mapping[str, Any]) -> str:
    """Describe how the learning rate departs from the paper's schedule; empty if it does not."""
    decay = ", then linear decay to zero" if training["decay"] == "linear" else ""
    factor = training["lr_factor"]
    return decay if factor == 1 else f"{decay}, all rates times {factor:g}"


def about_rates(scale: Scale) -> str:
    """Say how the highest learning rates are related to the paper's; every row's by the same factor."""
    ours, paper = (
        peak_learning_rate(d_model=run.model.d_model, config=run.training)
        for run in (row_at_scale("base", each) for each in (scale, "paper"))
    )
    return f"the highest rate of each row is {ours / paper:.1f} times the paper's (base {ours:.1e} and {paper:.1e})"


def about_training(records: Mapping[str, Sequence[RunRecord]], of_several_lengths: Set[str] = frozenset()) -> str:
    """Say which rows are trained to the end; of the rows ``of_several_lengths`` the best length counts."""
    first = {name: of_row[0] for name, of_row in records.items()}
    record = next(iter(first.values()))
    training = TABLE_3["base"]().training
    fewest, most = (end(run.updates for run in first.values()) for end in (min, max))
    updates = (
        f"Each row has {f'{fewest:,}' if fewest == most else f'{fewest:,} to {most:,}'} updates of"
        f" {record.tgt_tokens / record.updates:,.0f} target tokens (the paper: {training.max_updates:,} of about"
        f" {training.max_tokens_per_batch:,})"
    )
    of_big = TABLE_3["big"]().training.max_updates // training.max_updates
    if "big" in first and "base" in first and first["big"].updates == first["base"].updates:
        updates += f"; big as many as base, in the paper {of_big} times as many"
    falls = {
        name: mean(run.last_fall for run in of_row if run.last_fall is not None)
        for name, of_row in records.items()
        if any(run.last_fall is not None for run in of_row)
    }
    if not falls:
        return (
            f"{updates}. They were validated at their end only, so which of them are trained to the end is not known."
        )
    several = [name for name in falls if name in of_several_lengths]
    falls = {name: fall for name, fall in falls.items() if name not in several}
    learning = {name: fall for name, fall in falls.items() if not are_trained_to_the_end(records[name])}
    of_base = f", base ({100 * learning['base']:.1f} %)" if "base" in learning else ""
    slowest = [
        f"{name} ({100 * fall:.1f} %)" for name, fall in sorted(learning.items(), key=itemgetter(1))[:-3:-1]
        if name != "base"
    ]  # fmt: skip
    slow = f" (most in {' and '.join(slowest)}{of_base}): these are not trained to the end"
    overfitted = [name for name, fall in falls.items() if fall <= -CONVERGED]
    return (
        f"{updates}. In {len(learning)} of {len(first)} rows, the dev perplexity (the mean of the seeds) still fell"
        f" by {100 * CONVERGED:g} % or more over the last tenth of the updates{slow if learning else ''}. The"
        " rate falls to zero, so a small fall is also the end of the schedule: a longer run may end lower."
        + (f" The best checkpoint counts, and {', '.join(overfitted)} had it before the end." if overfitted else "")
        + (f" Of {' and '.join(several)} runs of several lengths were made; the best counts." if several else "")
    )
