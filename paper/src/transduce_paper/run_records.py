"""Experiments and their records: the configuration, cost and scores of finished training runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from transduce.config import (
    SPLITS,
    RunConfig,
    config_from_mapping,
    config_of_format_1,
    tables_of_format_3,
    without_unread,
)
from transduce.errors import ConfigError, DataError
from transduce.files import migrated, read_json

__all__ = [
    "CONVERGED", "PATHS", "RECORD_MIGRATIONS", "Experiment", "RunRecord", "about_runs", "are_trained_to_the_end",
    "machines", "name_of", "precisions", "read_record", "without_paths",
]  # fmt: skip

# A run has converged if its dev perplexity fell by less than this share over the last tenth of its updates.
CONVERGED = 0.005
RECORD_MIGRATIONS = (config_of_format_1,)
# Fields of [data] that name files on this machine: records leave them out, since they are shared.
PATHS = frozenset(
    {f"{split}_{kind}" for split in SPLITS for kind in ("trees", "tsv", "text", "prompts")}
    | {"treebank", "tokenizer_from"}
)
# Fields in which a record may differ from the experiment: vocabulary sizes are known only after preparation.
NOT_COMPARED = {
    *(("model", name) for name in ("src_vocab_size", "tgt_vocab_size", "vocab_size")),
    *(("data", name) for name in PATHS),
    ("training", "init_from"),
    ("training", "precision"),  # fp32 where a machine has no bf16 arithmetic
    ("alignment", "reward_model"),
}


@dataclass(frozen=True, slots=True)
class Experiment:
    """A training run: its configuration, and a unique name that is also the name of its record."""

    name: str
    config: RunConfig
    starts_from: Experiment | None = None  # the run starts from the weights of this one, with its tokenizer
    tokenizer_of: Experiment | None = None  # the text is prepared with the tokenizer of this one
    rated_by: Experiment | None = None  # the reward model of a policy


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Configuration, cost and scores of a finished run."""

    name: str
    config: dict[str, Any]  # complete, with the vocabulary sizes after preparation
    data_fingerprint: str  # fingerprint of the prepared text
    weights_sha256: str
    updates: int
    src_tokens: int
    tgt_tokens: int
    minutes: float
    machine: str
    torch: str
    parameters: int
    parameters_without_embeddings: int
    training_flops: float  # 6 per matrix weight and token; 0 if that rule does not apply
    sustained_flops: float  # FLOP/s of large matrix products in the same precision, measured before training
    dev_text: str
    dev_perplexity: float  # per token, not smoothed
    dev_scores: dict[str, Any]  # as ``transduce evaluate --json`` or ``parseval --json`` prints them
    test_text: str | None
    test_scores: dict[str, Any] | None
    starts_from: str | None = None  # name of the record whose weights the run has started from
    tokenizer_of: str | None = None  # name of the record whose tokenizer it has; None: its own, or that of starts_from
    rated_by: str | None = None  # name of the record of the reward model
    runs_at_once: int = 1  # runs that shared the machine, this one included
    last_fall: float | None = None  # share by which dev perplexity fell over the last tenth; None: not measured before

    @property
    def is_trained_to_the_end(self) -> bool:
        """Whether the run has converged, or overfits; one that was validated at its end only does not show it."""
        return self.last_fall is not None and self.last_fall < CONVERGED

    @property
    def overfits(self) -> bool:
        """Whether dev perplexity rose over the last tenth, so that an earlier checkpoint is the best and counts."""
        return self.last_fall is not None and self.last_fall <= -CONVERGED

    @property
    def scores(self) -> dict[str, Any]:
        """The scores on the test text, or without one on the dev text."""
        return self.test_scores or self.dev_scores

    @property
    def bleu(self) -> float:
        """The sacreBLEU on the text of ``scores``."""
        return float(self.scores["sacrebleu"]["score"])


def without_paths(config: RunConfig, vocab_sizes: tuple[int, int]) -> RunConfig:
    """Return the configuration for a record: with the vocabulary sizes, without the names of files."""
    shared = {
        "model": config.model.with_vocabulary(*vocab_sizes),
        "data": config.data.model_copy(update=dict.fromkeys(PATHS)),
        "training": config.training.model_copy(update={"init_from": None}),
        "alignment": config.alignment.model_copy(update={"reward_model": None}),
    }
    return config.model_copy(update=shared)


def read_record(path: Path, experiment: Experiment, *, run_folder: Path) -> RunRecord:
    """Read the record of an experiment.

    Raises DataError if it is damaged, ConfigError if its settings are not those of the experiment.
    """
    values = migrated(read_json(path), RECORD_MIGRATIONS, where=path)
    try:
        record = RunRecord(**values)
        tables = without_unread(tables_of_format_3(record.config))
        config = config_from_mapping(RunConfig, tables, where="config").model_dump()
    except (TypeError, ConfigError) as error:
        raise DataError(f"{path} is not a record of this version ({error}); delete it to run again") from error
    for name in ("starts_from", "tokenizer_of", "rated_by"):
        recorded, other = getattr(record, name), name_of(getattr(experiment, name))
        if recorded != other:
            raise ConfigError(
                f"{path} has {name} = {recorded!r}, but the experiment now has {other!r}; to run it again, delete"
                f" that file and {run_folder}"
            )
    for table, fields in experiment.config.model_dump().items():
        for name, value in fields.items():
            recorded = config[table].get(name)
            if not _is_same(recorded, value) and (table, name) not in NOT_COMPARED:
                raise ConfigError(
                    f"{path} has {table}.{name} = {recorded!r}, but the experiment now has {value!r}; to run it"
                    f" again, delete that file and {run_folder}"
                )
    return replace(record, config=config)


def are_trained_to_the_end(runs: Sequence[RunRecord]) -> bool:
    """Whether a model has converged, or overfits, by the mean over the runs of its seeds; a rise counts as no fall.

    Comparisons ask it of the worse model: the better one can only gain.
    """
    falls = [max(0.0, run.last_fall) for run in runs if run.last_fall is not None]
    return len(falls) == len(runs) and mean(falls) < CONVERGED


def about_runs(records: Iterable[RunRecord]) -> str:
    """Say how long some runs took, and how many of them are trained to the end."""
    runs = list(records)
    least, most = (f"{end(run.minutes for run in runs):.0f}" for end in (min, max))
    known = [run for run in runs if run.last_fall is not None]
    minutes = f"{least if least == most else f'{least} to {most}'} minute{'' if least == most == '1' else 's'}"
    if not known:
        ending = "Their records do not tell whether they are trained to the end."
    else:
        ending = f"{sum(run.is_trained_to_the_end for run in known)} of {len(runs)} are trained to the end."
    return f"Training took {minutes} a run. {ending}"


def machines(records: Iterable[RunRecord]) -> str:
    """Describe the machines of some runs: each processor and version of torch once."""
    return "; ".join(dict.fromkeys(f"{record.machine}, torch {record.torch}" for record in records))


def precisions(records: Iterable[RunRecord]) -> str:
    """Name the precisions of some runs."""
    return " and ".join(dict.fromkeys(record.config["training"]["precision"] for record in records))


def name_of(experiment: Experiment | None) -> str | None:
    """Return the name of an experiment, if there is one."""
    return None if experiment is None else experiment.name


def _is_same(recorded: object, value: object) -> bool:
    """Compare two settings; the order of weighted corpora matters, since the first with a dev text provides it."""
    if isinstance(recorded, dict) and isinstance(value, dict):
        return list(recorded.items()) == list(value.items())
    return recorded == value
