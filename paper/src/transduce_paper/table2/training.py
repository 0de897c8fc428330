"""The runs of Table 2, in the order in which they are trained: later ones depend on the records of earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from math import sqrt
from statistics import mean, median

from transduce_paper.at_once import train_at_once
from transduce_paper.experiments import Experiments
from transduce_paper.intervals import Interval, half_width_of_mean, interval_of_difference
from transduce_paper.request import Request
from transduce_paper.run_records import Experiment, RunRecord, are_trained_to_the_end
from transduce_paper.table2.systems import (
    LONGER_UPDATES,
    TRIED,
    UPDATES_BY_PAIRS,
    Tried,
    experiment_on_pairs,
    system_experiment,
    systems_at_scale,
    tried_experiment,
)
from transduce_paper.table2.text import write_text
from transduce_paper.training_curves import ValidationPoint

__all__ = [
    "N_SEEDS_OF_THE_BEST", "TRANSFORMER", "Trained", "is_recorded", "lead_over", "margin_of", "missing_runs",
    "recorded", "train_systems", "tries_of", "would_last",
]  # fmt: skip

TRANSFORMER = "Transformer"
N_SEEDS_OF_THE_BEST = 3  # of the Transformer, and of the other system that leads with seed 1; one at other scales


@dataclass(frozen=True, slots=True)
class Trained:
    """The runs of one system and their validations, by seed; at scale hours those on fewer pairs and a longer one."""

    records: Sequence[RunRecord]
    curves: Sequence[Sequence[ValidationPoint]]
    on_fewer: Mapping[int, RunRecord]
    longer: RunRecord | None = None

    @property
    def curve(self) -> Sequence[ValidationPoint]:
        """The validations of seed 1."""
        return self.curves[0]

    @property
    def bleu(self) -> float:
        """Mean BLEU over the seeds."""
        return mean(record.bleu for record in self.records)

    @property
    def minutes_by_seed(self) -> list[float]:
        """Minutes of all updates at the pace of the run."""
        paces = map(_minutes_per_update, self.records, self.curves)
        return [record.updates * pace for record, pace in zip(self.records, paces, strict=True)]

    @property
    def minutes_per_update(self) -> float:
        """Minutes of an update of seed 1."""
        return _minutes_per_update(self.records[0], self.curve)

    @property
    def minutes(self) -> float:
        """Minutes of all updates, the mean over the seeds."""
        return mean(self.minutes_by_seed)

    @property
    def flops_by_rule(self) -> float:
        """Training FLOPs by the paper's rule, time times the sustained FLOP/s of the machine, mean of the seeds."""
        pairs = zip(self.minutes_by_seed, self.records, strict=True)
        return mean(60 * minutes * record.sustained_flops for minutes, record in pairs)

    @property
    def flops_so_far(self) -> list[float]:
        """FLOPs by count at each validation."""
        record = self.records[0]
        return [record.training_flops * point.tgt_tokens / record.tgt_tokens for point in self.curve]


def train_systems(experiments: Experiments, request: Request) -> dict[str, Trained]:
    """Train every system, or read its records; by the request only what is recorded.

    Then a system has at least its first seed, and of an amount of text all these systems have to be recorded.
    """
    names = systems_at_scale(experiments.scale)
    if request.only_recorded:
        names = _recorded_systems(experiments)
    else:
        if experiments.scale == "hours" and not is_recorded(experiments):
            write_text(experiments)
        for turn in _turns(experiments, names):
            if request.jobs > 1:
                train_at_once(experiments, turn, jobs=request.jobs)
            for experiment in turn:
                experiments.run(experiment)
    has = partial(_have_records, experiments)
    seeds = {name: [run for run in _seeds_of(experiments, name, names) if has([run])] for name in names}
    on_fewer = {n_pairs: _on_fewer(experiments, n_pairs, names) for n_pairs in _amounts(experiments)}
    longer = {name: run for name, run in _longer(experiments, names).items() if has([run])}
    return {
        name: Trained(
            [experiments.run(each) for each in seeds[name]],
            [experiments.curve(each) for each in seeds[name]],
            {n_pairs: experiments.run(runs[name]) for n_pairs, runs in on_fewer.items() if has(runs.values())},
            experiments.run(longer[name]) if name in longer else None,
        )
        for name in names
    }


def tries_of(experiments: Experiments, names: Iterable[str]) -> dict[str, dict[Tried, RunRecord]]:
    """Return the records of the settings that systems were tried with, at scale hours."""
    return {
        name: {tried: experiments.run(tried_experiment(experiments, name, tried)) for tried in TRIED} for name in names
    }


def is_recorded(experiments: Experiments) -> bool:
    """Whether every run of the table has a record."""
    return all(_have_records(experiments, turn) for turn in _turns(experiments, systems_at_scale(experiments.scale)))


def recorded(experiments: Experiments) -> Request | None:
    """Return the request for what is recorded: for all, for the Transformer and other systems, or none."""
    if is_recorded(experiments):
        return Request()
    names = _recorded_systems(experiments)
    return Request(only_recorded=True) if TRANSFORMER in names and len(names) > 1 else None


def missing_runs(experiments: Experiments) -> list[str]:
    """Name the systems without a record of their first seed, then the other runs without one."""
    names = _recorded_systems(experiments)
    others = [name for name in systems_at_scale(experiments.scale) if name not in names]
    runs = chain.from_iterable(_turns(experiments, names))
    return others + [run.name for run in runs if not _have_records(experiments, [run])]


def _recorded_systems(experiments: Experiments) -> list[str]:
    """Return the systems whose first seed has a record, and all settings that they were tried with."""

    def is_begun(name: str) -> bool:
        tries = [tried_experiment(experiments, name, tried) for tried in TRIED if experiments.scale == "hours"]
        return _have_records(experiments, tries) and _have_records(experiments, [_main(experiments, name)])

    return [name for name in systems_at_scale(experiments.scale) if is_begun(name)]


def _have_records(experiments: Experiments, runs: Iterable[Experiment]) -> bool:
    return all(experiments.record_path(run).exists() for run in runs)


def _minutes_per_update(record: RunRecord, curve: Sequence[ValidationPoint]) -> float:
    """Return the minutes of an update, the median of the times between validations: a stall does not count."""
    if not curve:
        return record.minutes / record.updates
    starts = [(0, 0.0), *((point.update, point.minutes) for point in curve)]
    return median((after[1] - before[1]) / (after[0] - before[0]) for before, after in pairwise(starts))


def lead_over(other: str, systems: Mapping[str, Trained], values: Callable[[Trained], Sequence[float]]) -> Interval:
    """Return how far the Transformer is above another system, with the 95 % interval of seeds.

    The interval is of no width if every system has one seed only.
    """
    ours, theirs, *_ = groups = [list(values(systems[name])) for name in (TRANSFORMER, other, *systems)]
    if all(len(group) == 1 for group in groups):
        return Interval(ours[0] - theirs[0], 0.0)
    return interval_of_difference(ours, theirs, groups[2:])


def would_last(other: str, systems: Mapping[str, Trained]) -> bool:
    """Whether more training would not turn the lead over another system: its worse one is trained to the end.

    In its longer run, if both have one and the lead is the same there.
    """
    lead = lead_over(other, systems, lambda each: [record.bleu for record in each.records]).difference
    ours, theirs = systems[TRANSFORMER], systems[other]
    worse = theirs if lead > 0 else ours
    if ours.longer is None or theirs.longer is None or worse.longer is None:
        return are_trained_to_the_end(worse.records)
    return lead * (ours.longer.bleu - theirs.longer.bleu) > 0 and worse.longer.is_trained_to_the_end


def margin_of(systems: Mapping[str, Trained]) -> float | None:
    """Return the half width of the 95 % interval of the difference of two single runs; None with one seed each.

    Student's t with the variance pooled over the systems that have several seeds.
    """
    several = [[record.bleu for record in each.records] for each in systems.values() if len(each.records) > 1]
    if not several:
        return None
    return half_width_of_mean(1, several) * sqrt(2)


def _turns(experiments: Experiments, names: Sequence[str]) -> Iterator[list[Experiment]]:
    """Yield the runs in turns, each to be trained before the next.

    At scale hours: settings, seed 1, other seeds, longer runs, fewer pairs.
    """
    if experiments.scale == "hours":
        yield [tried_experiment(experiments, name, tried) for name in names for tried in TRIED]
    yield [_main(experiments, name) for name in names]
    yield list(chain.from_iterable(_seeds_of(experiments, name, names)[1:] for name in names))
    yield list(_longer(experiments, names).values())
    yield [run for n_pairs in _amounts(experiments) for run in _on_fewer(experiments, n_pairs, names).values()]


def _seeds_of(experiments: Experiments, name: str, names: Sequence[str]) -> list[Experiment]:
    """Return the runs of a system on all pairs: more than one of those that lead with seed 1."""
    n_seeds = 1
    if experiments.scale in ("cpu", "hours") and name in _leading(experiments, names):
        n_seeds = N_SEEDS_OF_THE_BEST
    return [_main(experiments, name, seed=seed) for seed in range(1, n_seeds + 1)]


def _leading(experiments: Experiments, names: Sequence[str]) -> tuple[str, str]:
    others = [name for name in names if name != TRANSFORMER]
    return TRANSFORMER, max(others, key=lambda name: experiments.run(_main(experiments, name)).bleu)


def _main(
    experiments: Experiments, name: str, *, seed: int = 1, n_pairs: int | None = None, n_updates: int | None = None
) -> Experiment:
    """Return the run of a system; at scale hours with the best of its settings by dev perplexity."""
    if experiments.scale != "hours":
        return system_experiment(experiments, name, seed=seed)
    tries = {tried: experiments.run(tried_experiment(experiments, name, tried)) for tried in TRIED}
    best = min(tries, key=lambda tried: tries[tried].dev_perplexity)
    return experiment_on_pairs(experiments, name, best, n_pairs=n_pairs, n_updates=n_updates, seed=seed)


def _longer(experiments: Experiments, names: Sequence[str]) -> dict[str, Experiment]:
    """Return the longer run of each system that leads, at scale hours."""
    leading = _leading(experiments, names) if experiments.scale == "hours" else ()
    return {name: _main(experiments, name, n_updates=LONGER_UPDATES) for name in leading}


def _on_fewer(experiments: Experiments, n_pairs: int, names: Sequence[str]) -> dict[str, Experiment]:
    """Return the run of each system on so many pairs."""
    return {name: _main(experiments, name, n_pairs=n_pairs) for name in names}


def _amounts(experiments: Experiments) -> list[int]:
    """Return the numbers of pairs below all that systems are trained on."""
    return [n for n in UPDATES_BY_PAIRS if n is not None] if experiments.scale == "hours" else []
