"""Where training experiments are made: a finished one is a small record on the disk, a half-done one is resumed.

``RECORDS/<scale>/<name>.json`` is what stays, and can be committed; stores, checkpoints and models are in the work
folder, and can be thrown away.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any, Literal, Protocol

import torch

from transduce.config import DataConfig, Precision, RunConfig, config_from_mapping
from transduce.config.migrations import config_of_format_1
from transduce.corpora import data_folders, generate_pairs
from transduce.errors import ConfigError, DataError, TrainingError
from transduce.files import Migration, migrated, read_json, sha256_of_file, write_json, write_lines
from transduce.metrics import TOKENISED_BLEUS
from transduce.model import cost_of
from transduce.recipes import with_settings
from transduce.tasks import RunResult, dev_perplexity, open_prepared, prepare, task_of, train
from transduce.tasks.model_folder import WEIGHTS_FILE, read_model_folder
from transduce.tasks.run_file import CHECKPOINTS, holds_run
from transduce.tasks.run_lock import only_writer
from transduce.training import Record, newest_complete, read_state

__all__ = [
    "Experiment",
    "Experiments",
    "Follower",
    "RunRecord",
    "Scale",
    "Stopped",
    "machine_description",
    "machines",
    "sustained_flops",
]

Scale = Literal["cpu", "gpu", "paper"]
SECONDS_BETWEEN_LOOKS = 2.0
MIGRATIONS = (config_of_format_1,)  # of records
MIGRATIONS_BESIDE: tuple[Migration, ...] = (dict,)  # of what is kept beside them
# Fields of a record that need not be those of the experiment: sizes are known after preparation, places differ.
NOT_COMPARED = {("model", "src_vocab_size"), ("model", "tgt_vocab_size"), ("data", "treebank")}


@dataclass(frozen=True, slots=True)
class Experiment:
    """A run with a name of its own, which is also that of its record."""

    name: str
    config: RunConfig


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is kept of a finished run."""

    name: str
    config: dict[str, Any]  # all of it; vocabulary sizes as they came out
    data_fingerprint: str  # of the prepared text
    weights_sha256: str  # of the model's file
    updates: int
    src_tokens: int
    tgt_tokens: int
    minutes: float
    machine: str
    torch: str
    parameters: int
    parameters_without_embeddings: int
    training_flops: float  # 6 for each weight of a matrix product and target token
    sustained_flops: float  # a second, before training: of large matrix products in the same precision
    dev_text: str
    dev_perplexity: float  # per token, not smoothed
    dev_scores: dict[str, Any]  # as ``transduce evaluate --json`` or ``parseval --json`` prints them
    test_text: str | None
    test_scores: dict[str, Any] | None


class Follower(Protocol):
    """What shows a run while it lasts."""

    def __call__(self, record: Record, /) -> None:
        """Take a record of the run."""

    def tell(self, line: str, /) -> None:
        """Take a line about it."""


class Stopped(Exception):
    """Somebody asked to stop; what was done is on the disk."""


class Experiments:
    """Finds records, and makes those that are missing."""

    def __init__(
        self,
        records: Path,
        work: Path,
        *,
        scale: Scale,
        data_folder: Path | None = None,
        device: str | torch.device = "cpu",
        follow: Callable[[RunConfig], AbstractContextManager[Follower]] | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        while_training: AbstractContextManager[object] | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        """``follow`` gives what shows a run while it lasts; the rest is as for ``train``."""
        self.records, self.work, self.scale = records, work, scale
        self.data_folder, self.device, self.tell = data_folder, torch.device(device), tell
        self._follow, self._should_stop, self._while_training = follow, should_stop, while_training

    def record_path(self, experiment: Experiment) -> Path:
        """Where the record of an experiment is, or will be."""
        return self.records / self.scale / f"{experiment.name}.json"

    def run(self, experiment: Experiment) -> RunRecord:
        """The record of an experiment: read, or made by a run from where an earlier one was stopped.

        Raises ConfigError if the record on the disk is of other settings, Stopped if somebody asked.
        """
        path = self.record_path(experiment)
        if path.exists():
            return self._read(path, experiment)
        with self._alone(experiment.name):
            if path.exists():  # another process was at it
                return self._read(path, experiment)
            return self._made(experiment)

    def model_folder(self, experiment: Experiment) -> Path:
        """The model of an experiment, which is trained anew, and its record with it, if only that is left."""
        folder = self.run_folder(experiment) / "model"
        record = self.run(experiment)
        if not _holds(folder, record):
            with self._alone(experiment.name):
                if not _holds(folder, record):
                    self.tell(f"{experiment.name}: its record is here, its model is not; it is trained anew")
                    self._made(experiment)  # the record stays as it is until there is another
        return folder

    def cached_measurement(
        self,
        experiment: Experiment,
        what: str,
        measure: Callable[[Path], list[dict[str, Any]]],
        *,
        settings: Mapping[str, int],
    ) -> list[dict[str, Any]]:
        """What ``measure(model_folder)`` finds in the model of an experiment, kept in a file beside its record.

        Measured anew where that file is of other weights or other ``settings``; else no model is needed.
        Raises DataError if the file cannot be used.
        """
        path = self.record_path(experiment).with_suffix(f".{what}.json")
        about = {"weights_sha256": self.run(experiment).weights_sha256, "settings": dict(settings)}
        if path.exists():
            kept = migrated(read_json(path), MIGRATIONS_BESIDE, where=path)
            if {name: kept.get(name) for name in about} == about:
                if isinstance(found := kept.get(what), list) and all(isinstance(each, dict) for each in found):
                    return found
                raise DataError(f"{path} should have a list {what!r} of tables; delete it to measure anew")
        folder = self.model_folder(experiment)
        self.tell(f"{experiment.name}: measuring {what}")
        found = measure(folder)
        about["weights_sha256"] = self.run(experiment).weights_sha256  # the model may have been trained anew for this
        write_json(path, {"format": len(MIGRATIONS_BESIDE), **about, what: found})
        return found

    def _made(self, experiment: Experiment) -> RunRecord:
        """Train, measure, and write the record."""
        folder = self.run_folder(experiment)
        self.tell(f"{experiment.name}: training")
        flops = sustained_flops(self.device, experiment.config.training.precision)
        with self._follow(experiment.config) if self._follow else nullcontext() as follower:
            result = train(
                experiment.config,
                folder,
                resume=holds_run(folder),
                store=self._store(experiment.config.data),
                device=self.device,
                also=TOKENISED_BLEUS.keys(),
                listeners=[follower] if follower else [],
                should_stop=self._should_stop,
                while_training=self._while_training,
                tell=follower.tell if follower else self.tell,
            )
        if result.reason == "asked" or result.model_folder is None:
            raise Stopped
        record = self._measured(experiment, folder, result, flops)
        write_json(self.record_path(experiment), {"format": len(MIGRATIONS), **asdict(record)})
        shutil.rmtree(folder / CHECKPOINTS)  # the model folder stays
        return record

    @contextmanager
    def _alone(self, what: str) -> Iterator[None]:
        """No other process makes the same meanwhile: waits for one that does, or raises Stopped if asked."""
        is_told = False
        while True:
            with ExitStack() as held:
                try:
                    held.enter_context(only_writer(self.work / "locks" / self.scale / what))
                except TrainingError as error:
                    if not is_told:
                        self.tell(f"{what}: waiting; {error}")
                        is_told = True
                else:
                    yield
                    return
            if self._should_stop():
                raise Stopped
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def run_folder(self, experiment: Experiment) -> Path:
        """The run folder of an experiment."""
        return self.work / self.scale / experiment.name

    def shortened(self, config: RunConfig) -> RunConfig:
        """A run of seconds, for tests: six updates on the built-in corpus, judged on a dozen sentences."""
        folder, pairs = self.work / "short", list(generate_pairs("dev", n_pairs=12, seed=1))
        folder.mkdir(parents=True, exist_ok=True)
        if config.data.task == "parsing":
            few, kind, lines, max_extra_tokens = folder / "few.ptb", "trees", [pair.tree for pair in pairs], 60
        else:
            few, kind, lines, max_extra_tokens = folder / "few.tsv", "tsv", [f"{p.en}\t{p.de}" for p in pairs], 1
        write_lines(few, lines)
        return with_settings(
            config,
            [
                "data.corpus=grammar", "data.n_pairs=300", "data.vocab_size=400", f"data.dev_{kind}='{few}'",
                f"data.test_{kind}='{few}'", "training.max_updates=6", "training.validate_every_updates=6",
                "training.checkpoint_every_updates=2", "training.max_tokens_per_batch=400", "search.beam_size=1",
                f"search.max_extra_tokens={max_extra_tokens}",
            ],
        )  # fmt: skip

    def _read(self, path: Path, experiment: Experiment) -> RunRecord:
        values = migrated(read_json(path), MIGRATIONS, where=path)
        try:
            record = RunRecord(**values)
            config = config_from_mapping(RunConfig, record.config, where="config").model_dump()
        except (TypeError, ConfigError) as error:
            raise DataError(f"{path} is no record of this version ({error}); delete it to run anew") from error
        for table, fields in experiment.config.model_dump().items():
            for name, value in fields.items():
                found = config[table].get(name)
                if not _is_same(found, value) and (table, name) not in NOT_COMPARED:
                    raise ConfigError(
                        f"{path} was made with {table}.{name} = {found!r}, now it is {value!r}; to run anew, delete it"
                        f" and {self.run_folder(experiment)}"
                    )
        return replace(record, config=config)

    def _store(self, data: DataConfig) -> Path:
        """The prepared text, which all experiments on it share."""
        places = [str(folder.resolve()) for folder in data_folders(self.data_folder)]
        name = sha256(json.dumps([data.model_dump(), places]).encode()).hexdigest()[:16]
        store = self.work / "stores" / name
        if not store.exists():
            with self._alone(name):
                if not store.exists():
                    prepare(data, store, data_folder=self.data_folder, tell=self.tell)
        return store

    def _measured(self, experiment: Experiment, folder: Path, result: RunResult, flops: float) -> RunRecord:
        config, prepared = experiment.config, open_prepared(self._store(experiment.config.data))
        newest = newest_complete(folder / CHECKPOINTS, self.tell)
        if newest is None:
            raise DataError(f"{folder / CHECKPOINTS} is empty, but the run has ended; delete {folder} to run anew")
        state = read_state(newest)
        model_folder = folder / "model"
        sizes = prepared.tokenizers.src.size, prepared.tokenizers.tgt.size
        model_config = config.model.with_vocabulary(*sizes)
        cost = cost_of(model_config)
        scores: dict[str, dict[str, Any] | None] = {}
        for split in ("dev", "test"):
            text = prepared.text(split)
            if text is None:
                scores[split] = None
            elif split == result.scored_split and result.scores is not None:
                scores[split] = result.scores.as_json()
            else:
                of_split = task_of(config).evaluate(
                    model_folder, prepared, split, device=self.device, also=TOKENISED_BLEUS.keys()
                )
                scores[split] = of_split.as_json()
        if scores["dev"] is None:
            raise DataError(f"{experiment.name}: {prepared.folder} has no dev text, which experiments are judged on")
        # Where a treebank lies on this machine is nobody's business.
        data_config = config.data.model_copy(update={"treebank": None})
        return RunRecord(
            name=experiment.name,
            config=config.model_copy(update={"model": model_config, "data": data_config}).model_dump(),
            data_fingerprint=prepared.fingerprint,
            weights_sha256=sha256_of_file(model_folder / WEIGHTS_FILE),
            updates=state.update,
            src_tokens=state.src_tokens,
            tgt_tokens=state.tgt_tokens,
            minutes=round(state.elapsed_s / 60, 4),
            machine=machine_description(self.device),
            torch=str(torch.__version__),
            parameters=cost.parameters,
            parameters_without_embeddings=cost.parameters_without_embeddings,
            training_flops=config.training.mean_passes(state.update) * cost.flops_per_token * state.tgt_tokens,
            sustained_flops=flops,
            dev_text=prepared.text_names["dev"],
            dev_perplexity=dev_perplexity(read_model_folder(model_folder, device=self.device).model, prepared, config),
            dev_scores=scores["dev"],
            test_text=prepared.text_names.get("test"),
            test_scores=scores["test"],
        )


def _holds(folder: Path, record: RunRecord) -> bool:
    """Whether a folder has the very model that a record tells of."""
    weights = folder / WEIGHTS_FILE
    return weights.exists() and sha256_of_file(weights) == record.weights_sha256


def _is_same(found: object, value: object) -> bool:
    """Of corpora with weights the order counts, too: the first with a dev text gives it."""
    if isinstance(found, dict) and isinstance(value, dict):
        return list(found.items()) == list(value.items())
    return found == value


def sustained_flops(device: torch.device, precision: Precision) -> float:
    """Floating-point operations a second of a large matrix product: the median of some, after a first."""
    size = 8192 if device.type == "cuda" else 1536
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    seconds = []
    for _ in range(8):
        started = time.perf_counter()
        (left @ right)[0, 0].item()  # waits for the device
        seconds.append(time.perf_counter() - started)
    return 2 * size**3 / median(seconds[1:])


def machines(records: Iterable[RunRecord]) -> str:
    """Where some experiments were made: each machine and version of torch once."""
    return "; ".join(dict.fromkeys(f"{record.machine}, torch {record.torch}" for record in records))


def machine_description(device: torch.device) -> str:
    """In words: a GPU by its name, a processor by its model and the threads in use."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{model}, {torch.get_num_threads()} of {os.cpu_count()} threads"
