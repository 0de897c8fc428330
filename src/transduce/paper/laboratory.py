"""Where training experiments are made: a finished one is a small record on the disk, a half-done one is resumed.

``RECORDS/<scale>/<name>.json`` is what stays, and can be committed; stores, checkpoints and models are in the work
folder, and can be thrown away.
"""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any, Literal, Protocol

import torch

from transduce.config import DataConfig, Precision, RunConfig
from transduce.corpora import generate_pairs
from transduce.errors import ConfigError, DataError
from transduce.files import read_json, write_json, write_lines
from transduce.model import cost_of
from transduce.recipes import with_settings
from transduce.tasks import dev_perplexity, open_prepared, prepare, scores_of, task_of, train
from transduce.tasks.model_folder import read_model_folder
from transduce.training import Record, newest_complete, read_state

__all__ = [
    "Experiment",
    "Follower",
    "Laboratory",
    "RunRecord",
    "Scale",
    "Stopped",
    "machine_in_words",
    "sustained_flops",
]

Scale = Literal["cpu", "gpu", "paper"]


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
    updates: int
    src_tokens: int
    tgt_tokens: int
    minutes: float
    machine: str
    torch: str
    parameters: int
    parameters_without_embeddings: int
    training_flops: float  # 6 for each weight of a matrix product and target token
    sustained_flops: float  # a second: of large matrix products on that machine in the precision of training
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


class Laboratory:
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
        folder = self.run_folder(experiment)
        self.tell(f"{experiment.name}: training")
        with self._follow(experiment.config) if self._follow else nullcontext() as follower:
            result = train(
                experiment.config,
                folder,
                resume=True,
                store=self._store(experiment.config.data),
                device=self.device,
                listeners=[follower] if follower else [],
                should_stop=self._should_stop,
                while_training=self._while_training,
                tell=follower.tell if follower else self.tell,
            )
        if result.reason == "asked" or result.model_folder is None:
            raise Stopped
        record = self._measured(experiment, folder)
        write_json(path, asdict(record))
        shutil.rmtree(folder / "checkpoints")  # the model folder stays
        return record

    def model_folder(self, experiment: Experiment) -> Path:
        """The model of an experiment, which is trained anew if only its record is left."""
        folder = self.run_folder(experiment) / "model"
        if not folder.exists():
            self.record_path(experiment).unlink(missing_ok=True)
            self.run(experiment)
        return folder

    def run_folder(self, experiment: Experiment) -> Path:
        """The run folder of an experiment."""
        return self.work / self.scale / experiment.name

    def shortened(self, config: RunConfig) -> RunConfig:
        """A run of seconds, for tests: six updates on the built-in corpus, judged on a dozen sentences."""
        folder, pairs = self.work / "short", list(generate_pairs("dev", n_pairs=12, seed=1))
        folder.mkdir(parents=True, exist_ok=True)
        if config.data.target == "trees":
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
        values = read_json(path, error=DataError)
        try:
            record = RunRecord(**values)
        except TypeError as error:
            raise DataError(f"{path} is no record of this version ({error}); delete it to run anew") from error
        wanted = experiment.config.model_dump()
        for table, fields in wanted.items():
            for name, value in fields.items():
                found = record.config.get(table, {}).get(name)
                if found != value and not name.endswith("_vocab_size") and name != "treebank":
                    raise ConfigError(
                        f"{path} was made with {table}.{name} = {found!r}, now it is {value!r}; delete it to run anew"
                    )
        return record

    def _store(self, data: DataConfig) -> Path:
        """The prepared text, which all experiments on it share."""
        store = self.work / "stores" / sha256(data.model_dump_json().encode()).hexdigest()[:16]
        if not store.exists():
            prepare(data, store, data_folder=self.data_folder, tell=self.tell)
        return store

    def _measured(self, experiment: Experiment, folder: Path) -> RunRecord:
        config, prepared = experiment.config, open_prepared(self._store(experiment.config.data))
        newest = newest_complete(folder / "checkpoints", self.tell)
        assert newest is not None
        state = read_state(newest)
        model_folder = folder / "model"
        sizes = prepared.tokenizers.src.size, prepared.tokenizers.tgt.size
        model_config = config.model.with_vocabulary(*sizes)
        cost = cost_of(model_config)
        scores: dict[str, dict[str, Any] | None] = {}
        for split in ("dev", "test"):
            text = prepared.text(split)
            found = None if text is None else scores_of(model_folder, task_of(config), text, device=self.device)
            scores[split] = None if found is None else found.as_json()
        if scores["dev"] is None:
            raise DataError(f"{experiment.name}: {prepared.folder} has no dev text, which experiments are judged on")
        return RunRecord(
            name=experiment.name,
            config=config.model_copy(update={"model": model_config}).model_dump(),
            updates=state.update,
            src_tokens=state.src_tokens,
            tgt_tokens=state.tgt_tokens,
            minutes=round(state.elapsed_s / 60, 4),
            machine=machine_in_words(self.device),
            torch=str(torch.__version__),
            parameters=cost.parameters,
            parameters_without_embeddings=cost.parameters_without_embeddings,
            training_flops=config.training.mean_passes(state.update) * cost.flops_per_token * state.tgt_tokens,
            sustained_flops=sustained_flops(self.device, config.training.precision),
            dev_text=prepared.text_names["dev"],
            dev_perplexity=dev_perplexity(read_model_folder(model_folder, device=self.device).model, prepared, config),
            dev_scores=scores["dev"],
            test_text=prepared.text_names.get("test"),
            test_scores=scores["test"],
        )


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


def machine_in_words(device: torch.device) -> str:
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
