"""Training runs behind the tables and figures: finished runs are read from small records, the others are trained.

``RECORDS/<scale>/<name>.json`` is the record of a finished run and can be committed. Token stores, checkpoints and
models are in the work folder and can be deleted; an interrupted run resumes from its last checkpoint.
Two commands that need the same run may be started at once: the second waits for the first, then reads its record.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, get_args

import torch

from transduce.config import DataConfig, Precision, RunConfig, Split
from transduce.corpora import Pair, ParallelText, data_folders
from transduce.errors import DataError, TrainingError
from transduce.files import atomic_folder, sha256_of_file, write_json
from transduce.inference import WEIGHTS_FILE
from transduce.metrics import TOKENISED_BLEUS
from transduce.model import fast_precision
from transduce.recipes import with_settings
from transduce.runs import CHECKPOINTS, holds_run, read_run_config, run_lock, train
from transduce.tasks import open_prepared, prepare
from transduce.training import Record
from transduce_paper.machine import sustained_flops
from transduce_paper.measurement_cache import MeasuredArrays, read_arrays, read_tables, write_arrays, write_tables
from transduce_paper.record_of_run import record_of
from transduce_paper.run_records import RECORD_MIGRATIONS, Experiment, RunRecord, read_record
from transduce_paper.short_runs import shortened, write_few
from transduce_paper.training_curves import ValidationPoint, validations

__all__ = ["SCALES", "Experiments", "Follower", "Scale", "Stopped"]

# test: cpu shortened to seconds, its numbers mean nothing; cpu: small models in minutes; hours: larger ones of
# Tables 2 to 4, trained longer; gpu: larger still, on a GPU; paper: its own runs.
Scale = Literal["test", "cpu", "hours", "gpu", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
MeasuredT = TypeVar("MeasuredT")
T = TypeVar("T")
LOCK_POLL_SECONDS = 2.0


class Follower(Protocol):
    """A progress display of one run."""

    def __call__(self, record: Record, /) -> None:
        """Handle one record of the run."""

    def log(self, line: str, /) -> None:
        """Show one line of text."""


class Stopped(Exception):
    """The user interrupted the run; it can be resumed from its last checkpoint."""


class Experiments:
    """Return records of finished runs and train the missing ones."""

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
        log: Callable[[str], None] = lambda line: None,
        flops: Mapping[Precision, float] | None = None,
        runs_at_once: int = 1,
    ) -> None:
        """``follow`` makes the progress display of a run; the other arguments are those of ``train``, and for records:

        ``flops`` are the FLOP/s of large matrix products, if they were measured before, and ``runs_at_once`` the number
        of processes that train on this machine at a time.
        """
        self.records, self.work, self.scale = records, work, scale
        self.data_folder, self.device, self.log = data_folder, torch.device(device), log
        self._follow, self.should_stop = follow, should_stop
        self.while_training: AbstractContextManager[object] = while_training or nullcontext()
        self._flops, self._runs_at_once = dict(flops or {}), runs_at_once

    def experiment(
        self,
        name: str,
        config: RunConfig,
        *,
        test: Sequence[str] = (),
        starts_from: Experiment | None = None,
        tokenizer_of: Experiment | None = None,
    ) -> Experiment:
        """Return a run under its name; at test scale it is shortened, with the settings ``test`` besides."""
        if self.scale == "test":
            config = with_settings(shortened(config, self.work / self.scale), test)
        return Experiment(name, config, starts_from, tokenizer_of)

    def pick(self, value: T, *, test: T) -> T:
        """Return a value, or at test scale the other one."""
        return test if self.scale == "test" else value

    def record_path(self, experiment: Experiment) -> Path:
        """Return the path of an experiment's record, whether or not it exists."""
        return self.records / self.scale / f"{experiment.name}.json"

    def run(self, experiment: Experiment) -> RunRecord:
        """Return the record of an experiment; without one, train it first or resume its interrupted run.

        Raises ConfigError if the record on disk has other settings, Stopped if the user interrupts.
        """
        path = self.record_path(experiment)
        if path.exists():
            return read_record(path, experiment, run_folder=self.run_folder(experiment))
        with self._locked(experiment.name):
            if path.exists():  # another process has finished it
                return read_record(path, experiment, run_folder=self.run_folder(experiment))
            return self._train(experiment)

    def model_folder(self, experiment: Experiment) -> Path:
        """Return the model folder of an experiment.

        If only the record is left, the model is trained again, and the record is replaced by that of the new run.
        """
        folder = self.run_folder(experiment) / "model"
        record = self.run(experiment)
        if not _has_model_of(folder, record):
            with self._locked(experiment.name):
                if not _has_model_of(folder, record):
                    self.log(f"{experiment.name}: found its record but not its model; training it again")
                    self._train(experiment)  # the old record stays until the new one replaces it
        return folder

    def cached_measurement(
        self,
        experiment: Experiment,
        what: str,
        measure: Callable[[Path], list[dict[str, Any]]],
        *,
        settings: Mapping[str, int | str],
    ) -> list[dict[str, Any]]:
        """Return ``measure(model_folder)`` of an experiment's model, cached in a file beside its record.

        The cache is used if its weights and ``settings`` match; then no model is needed. Otherwise the measurement is
        repeated. Raises DataError if the cached file is damaged.
        """
        path = self.record_path(experiment).with_suffix(f".{what}.json")
        return self._cached(
            experiment, what, measure, settings,
            lambda key: read_tables(path, what, key), lambda key, tables: write_tables(path, what, key, tables),
        )  # fmt: skip

    def curve(self, experiment: Experiment) -> list[ValidationPoint]:
        """Return the validations of a run, in order; they are read from its metrics once and cached."""
        cached = self.cached_measurement(experiment, "curve", validations, settings={})
        return [ValidationPoint(**values) for values in cached]

    def kept_curve(self, experiment: Experiment) -> list[ValidationPoint] | None:
        """Return the validations of a run if they are beside its record; no model is trained for them."""
        is_kept = self.record_path(experiment).with_suffix(".curve.json").exists()
        return self.curve(experiment) if is_kept else None

    def cached_arrays(
        self,
        experiment: Experiment,
        what: str,
        measure: Callable[[Path], MeasuredArrays],
        *,
        settings: Mapping[str, int | str],
    ) -> MeasuredArrays:
        """Return arrays measured on an experiment's model, cached as ``cached_measurement`` does.

        The cache is ``RECORD.WHAT.json`` with the values and one file ``RECORD.WHAT.NAME.npy`` for each array. Raises
        DataError if a cached file is damaged, or if the arrays are too large to be kept.
        """
        path = self.record_path(experiment).with_suffix(f".{what}.json")
        return self._cached(
            experiment, what, measure, settings,
            lambda key: read_arrays(path, key), lambda key, arrays: write_arrays(path, key, arrays),
        )  # fmt: skip

    def measurement(
        self, name: str, what: str, measure: Callable[[], list[dict[str, Any]]], *, settings: Mapping[str, int | str]
    ) -> list[dict[str, Any]]:
        """Return ``measure()``, cached in the file ``NAME.WHAT.json`` beside the records; no model is needed.

        The cache is used if its ``settings`` match. Raises DataError if the cached file is damaged.
        """
        path, key = self.records / self.scale / f"{name}.{what}.json", {"settings": dict(settings)}
        tables = read_tables(path, what, key)
        if tables is None:
            self.log(f"{name}: measuring {what}")
            tables = measure()
            write_tables(path, what, key, tables)
        return tables

    def _cached(
        self,
        experiment: Experiment,
        what: str,
        measure: Callable[[Path], MeasuredT],
        settings: Mapping[str, int | str],
        read: Callable[[Mapping[str, Any]], MeasuredT | None],
        write: Callable[[Mapping[str, Any], MeasuredT], None],
    ) -> MeasuredT:
        """Return what ``read`` finds under the key of these weights and settings, else measure and ``write`` it."""
        key = {"weights_sha256": self.run(experiment).weights_sha256, "settings": dict(settings)}
        cached = read(key)
        if cached is not None:
            return cached
        folder = self.model_folder(experiment)
        self.log(f"{experiment.name}: measuring {what}")
        measured = measure(folder)
        key["weights_sha256"] = self.run(experiment).weights_sha256  # the model may have just been retrained
        write(key, measured)
        return measured

    def pairs(self, experiment: Experiment, split: Split) -> Iterator[Pair]:
        """Yield the pairs of a text of a translator: those it is trained on, or all of dev or test."""
        if split == "train":
            text = ParallelText(experiment.config.data, self.data_folder)
            return (pair for corpus in text.corpora for pair in text.train(corpus))
        sides = open_prepared(self.store(experiment.config.data)).text(split)
        if sides is None:
            raise DataError(f"{experiment.name} has no {split} text")
        return zip(*sides, strict=True)

    def flops(self, precision: Precision) -> float:
        """Return the FLOP/s of large matrix products on the device, measured once."""
        if precision not in self._flops:
            self._flops[precision] = sustained_flops(self.device, precision)
        return self._flops[precision]

    def in_another_process(self, *, runs_at_once: int) -> partial[Experiments]:
        """Return what makes the same experiments in another process, without displays and signal handlers."""
        return partial(
            Experiments,
            self.records,
            self.work,
            scale=self.scale,
            data_folder=self.data_folder,
            device=self.device,
            flops=self._flops,
            runs_at_once=runs_at_once,
        )

    def _train(self, experiment: Experiment) -> RunRecord:
        """Train a model, score it and write its record."""
        folder, config = self.run_folder(experiment), self._located(experiment)
        self.log(f"{experiment.name}: training")
        flops = self.flops(config.training.precision)
        with self._follow(config) if self._follow else nullcontext() as follower:
            result = train(
                config,
                folder,
                resume=holds_run(folder),
                store=self.store(config.data),
                device=self.device,
                extra_bleus=TOKENISED_BLEUS.keys(),
                listeners=[follower] if follower else [],
                should_stop=self.should_stop,
                while_training=self.while_training,
                log=follower.log if follower else self.log,
            )
        if result.reason == "interrupted" or result.model_folder is None:
            raise Stopped
        prepared = open_prepared(self.store(config.data))
        record = record_of(
            experiment, config, prepared, folder, result,
            device=self.device, flops=flops, runs_at_once=self._runs_at_once, text_name=self._text_name, log=self.log,
        )  # fmt: skip
        write_json(self.record_path(experiment), {"format": len(RECORD_MIGRATIONS), **asdict(record)})
        self.curve(experiment)  # kept beside the record, so that no report needs the run folder
        shutil.rmtree(folder / CHECKPOINTS)  # the model folder stays
        return record

    @contextmanager
    def _locked(self, what: str) -> Iterator[None]:
        """Hold the lock named ``what``, waiting if another process has it. Raises Stopped if ``should_stop()``."""
        is_logged = False
        while True:
            with ExitStack() as held:
                try:
                    held.enter_context(run_lock(self.work / "locks" / self.scale / what))
                except TrainingError as error:
                    if not is_logged:
                        self.log(f"{what}: waiting; {error}")
                        is_logged = True
                else:
                    yield
                    return
            if self.should_stop():
                raise Stopped
            time.sleep(LOCK_POLL_SECONDS)

    def run_folder(self, experiment: Experiment) -> Path:
        """Return the run folder of an experiment."""
        return self.work / self.scale / experiment.name

    def made_once(self, name: str, make: Callable[[Path], None]) -> Path:
        """Return a folder of the work folder that ``make`` fills unless it exists; another process waits for it."""
        folder = self.work / name
        if not folder.exists():
            with self._locked(name):
                if not folder.exists():
                    with atomic_folder(folder) as made:
                        make(made)
        return folder

    def store_with_tokenizer_of(self, model_folder: Path, data: DataConfig) -> Path:
        """Return the token store of a text, encoded by the tokenizer of a model; prepare it if missing."""
        return self.store(data.model_copy(update={"tokenizer_from": str(model_folder)}))

    def _located(self, experiment: Experiment) -> RunConfig:
        """Return the configuration of a run on this machine, with the paths of the models that it needs.

        They are trained if they are missing.
        """
        needed = {
            "training.init_from": experiment.starts_from,
            "data.tokenizer_from": experiment.starts_from or experiment.tokenizer_of,
            "alignment.reward_model": experiment.rated_by,
        }
        folders = {name: str(self.model_folder(other)) for name, other in needed.items() if other is not None}
        located = {**folders, "training.precision": self._precision(experiment)}
        return with_settings(experiment.config, [f"{name}={json.dumps(value)}" for name, value in located.items()])

    def _precision(self, experiment: Experiment) -> Precision:
        """Return the precision of a run: fp32 in place of a bf16 that the device would have to emulate.

        A run that was begun keeps its own.
        """
        folder, wanted = self.run_folder(experiment), experiment.config.training.precision
        if holds_run(folder):
            return read_run_config(folder).training.precision
        return fast_precision(self.device) if wanted == "bf16" else wanted

    def store(self, data: DataConfig) -> Path:
        """Return the token store of a text, shared by all experiments on it; prepare it if missing.

        With a model to start from, it is that of these very weights, which may have written some of the text.
        """
        key: list[object] = [data.model_dump(), [str(folder.resolve()) for folder in data_folders(self.data_folder)]]
        if data.tokenizer_from is not None:
            key.append(sha256_of_file(Path(data.tokenizer_from) / WEIGHTS_FILE))
        name = sha256(json.dumps(key).encode()).hexdigest()[:16]
        store = self.work / "stores" / name
        if not store.exists():
            with self._locked(name):
                if not store.exists():
                    if self.scale == "test":
                        write_few(self.work / self.scale)
                    prepare(data, store, data_folder=self.data_folder, log=self.log)
        return store

    def _text_name(self, name: str) -> str:
        """Return the name of a text for a record: a file that the experiments wrote without their folder."""
        path = Path(name)
        return str(path.relative_to(self.work)) if path.is_relative_to(self.work) else name


def _has_model_of(folder: Path, record: RunRecord) -> bool:
    """Return whether a folder has the model of a record, by the checksum of its weights."""
    weights = folder / WEIGHTS_FILE
    return weights.exists() and sha256_of_file(weights) == record.weights_sha256
