"""A run from recipe to model folder: prepare, train, average, evaluate. Sections 5 and 6.1."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transduce.config import ModelConfig, RunConfig
from transduce.data import StoreBatches
from transduce.errors import CheckpointError, ConfigError, DataError, TrainingError
from transduce.files import read_json, remove, write_json
from transduce.inference.folder import read_saved_weights
from transduce.metrics import TokenisedBleu
from transduce.model import fast_precision, make_model
from transduce.runs.averaging import average_run
from transduce.runs.folder import (
    METRICS_FILE,
    STORE,
    STORE_POINTER,
    TENSORBOARD,
    require_own_folder,
    require_same_data,
    store_of,
)
from transduce.runs.lock import run_lock
from transduce.runs.memory import require_memory_to_train
from transduce.runs.run_file import (
    CHECKPOINTS,
    RUN_FILE,
    RunSettings,
    holds_run,
    read_run_file,
    require_made_by,
    require_run,
    resume_config,
    with_start_of,
)
from transduce.runs.starting_weights import overwriting, require_same_vocabulary, take_weights
from transduce.tasks.preparation import prepare
from transduce.tasks.prepared import Prepared, open_prepared
from transduce.tasks.registry import task_of
from transduce.tasks.task import Scores, Task
from transduce.training import (
    BatchSource,
    CheckpointRecord,
    DistributedContext,
    Listener,
    MetricsFile,
    Record,
    StopReason,
    TensorBoardEvents,
    Trainer,
    full_weights,
    learning_rate,
    load_weights,
    newest_complete,
    set_aside_misnamed,
    set_aside_newer,
    shard,
)

__all__ = ["RunResult", "train"]

MIN_VOCABULARY = 4  # the special tokens; the actual size is known after preparation


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a run."""

    folder: Path
    reason: StopReason
    updates: int
    model_folder: Path | None  # None: interrupted, to be resumed
    scores: Scores | None  # of the averaged model on test, or on dev if there is no test
    scored_split: str | None
    scored_text: str | None  # name of that text


def train(
    config: RunConfig,
    folder: Path,
    *,
    resume: bool = False,
    store: Path | None = None,
    data_folder: Path | None = None,
    device: str | torch.device = "cpu",
    distributed: DistributedContext | None = None,
    is_sharded: bool = False,
    break_lock: bool = False,
    extra_bleus: Collection[TokenisedBleu] | None = None,
    listeners: Sequence[Listener] = (),
    should_stop: Callable[[], bool] = lambda: False,
    while_training: AbstractContextManager[object] | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> RunResult:
    """Train a model as configured, from preparing the text to an averaged and evaluated model folder.

    Creates the run folder ``folder``; with ``resume``, continues the run in it.
    ``store`` is a prepared folder to use instead of preparing the text; ``data_folder`` is searched first for corpora.
    ``distributed`` are the processes of the run, which shard the model if ``is_sharded`` (FSDP2). ``break_lock`` takes
    over a lock left by a dead process on another machine. ``extra_bleus`` names tokenised BLEUs for the final
    evaluation; by default, those customary for its text. ``should_stop`` is checked before each update and during
    validation; ``while_training`` is a context entered for the update loop only (signal handlers). ``log`` receives a
    line about each step; ``log`` and ``listeners`` are called on rank 0 only.
    Raises ConfigError, DataError, CheckpointError or TrainingError; the run folder stays usable.
    """
    distributed = distributed or DistributedContext()
    task_of(config)  # raises before anything is written
    if distributed.n > 1 and not task_of(config).is_parallel:
        raise ConfigError(f"task = {config.data.task!r} runs in one process; start it without torchrun")
    if is_sharded and distributed.n == 1:
        raise ConfigError("sharding needs several processes; start them with torchrun, or leave out --shard")
    if is_sharded and not task_of(config).is_shardable:
        raise ConfigError(f"task = {config.data.task!r} compares the model with a copy; leave out --shard")
    if is_sharded and config.training.optimiser == "muon":
        raise ConfigError("training.optimiser = 'muon' needs full matrices; leave out --shard, or use adam")
    with run_lock(folder, break_lock=break_lock) if distributed.is_first else nullcontext():
        run = _Run(folder, torch.device(device), distributed, is_sharded=is_sharded, log=log)
        config_json, checkpoint = distributed.broadcast_from_first(
            lambda: run.start(config, resume=resume, store=store, data_folder=data_folder)
        )
        reason, updates = run.update(
            RunConfig.model_validate_json(config_json),
            checkpoint,
            listeners=listeners,
            should_stop=should_stop,
            context=while_training,
        )
        if reason == "interrupted" or not distributed.is_first:
            return RunResult(folder, reason, updates, None, None, None, None)
        return run.end(reason, updates, extra_bleus)


class _Run:
    """One process's part of a run: ``start`` (rank 0 only), ``update``, ``end`` (rank 0 only)."""

    def __init__(
        self,
        folder: Path,
        device: torch.device,
        distributed: DistributedContext,
        *,
        is_sharded: bool,
        log: Callable[[str], None],
    ) -> None:
        self.folder, self.device, self.distributed, self.is_sharded = folder, device, distributed, is_sharded
        self.log = log if distributed.is_first else lambda line: None
        self.settings: RunSettings | None = None  # on rank 0, after ``start``
        self._batches: BatchSource[Any] | None = None

    @cached_property
    def prepared(self) -> Prepared:
        """The prepared text of a started run."""
        return open_prepared(store_of(self.folder))

    def start(
        self, config: RunConfig, *, resume: bool, store: Path | None, data_folder: Path | None
    ) -> tuple[str, str | None]:
        """Prepare the text and write ``run.json``; on rank 0 only.

        Returns the configuration as JSON, and the name of the checkpoint to resume from, if there is one.
        """
        folder = self.folder
        require_own_folder(folder)
        has_run = holds_run(folder)
        if resume:
            require_run(folder)
        if has_run and not resume:
            raise TrainingError(f"{folder} holds a run already; add --resume to continue it, or use another --out")
        existing = read_run_file(folder) if has_run else None
        checkpoint = newest_complete(folder / CHECKPOINTS, self.log)
        if existing is not None and checkpoint is not None:
            self._require_same_run(existing, checkpoint)
        if existing is not None:
            config = with_start_of(existing.config, config)
        if existing is not None and any((folder / CHECKPOINTS).glob("*update-*")):  # else settings may change freely
            config = resume_config(folder, config, self.log)
        # Fail before hours of preparation, where possible.
        task_of(config).require_best_by(config)
        self._require_memory(task_of(config).model_config(config.model, MIN_VOCABULARY, MIN_VOCABULARY), config)
        self.prepared = prepared = _prepared(config, folder, store, data_folder, self.log)
        if existing is not None:
            require_same_data(folder, existing, prepared)
        if store is not None and store.resolve() == (folder / STORE).resolve():
            remove(folder / STORE_POINTER)
        elif store is not None:
            write_json(folder / STORE_POINTER, {"folder": str(store.resolve())})
        model_config = task_of(config).model_config(config.model, *prepared.tokenizers.sizes)
        config = config.model_copy(update={"model": model_config})
        self._require_memory(model_config, config)
        batches = self.batches(config)
        if isinstance(batches, StoreBatches):
            statistics, counted = batches.statistics(epoch=0), task_of(config).counted_noun
            source = f"{statistics.n_src_tokens:,} source and " if counted == Task.counted_noun else ""
            self.log(
                f"an epoch: {statistics.n_batches:,} batches, {source}{statistics.n_tgt_tokens:,} {counted}, "
                f"{statistics.padding_fraction:.1%} padding"
            )
        for remark in task_of(config).remarks_on_search(prepared.folder, config.search):
            self.log(remark)
        if prepared.dev is None:
            self.log("no dev text: there is no validation and no best checkpoint, and patience has no effect")
        torch_version = existing.torch if existing is not None else str(torch.__version__)
        ancestry = existing.ancestry if existing is not None else ()
        started_in, data = str(Path.cwd()), None if data_folder is None else str(data_folder.absolute())
        folders = (started_in, data) if existing is None else (existing.started_in, existing.data_folder)
        if checkpoint is None and config.training.init_from is not None:
            path = Path(config.training.init_from)
            saved = read_saved_weights(path)
            require_same_vocabulary(saved, model_config, prepared.tokenizers, path)
            ancestry = saved.ancestry
        self.settings = RunSettings(config, prepared.fingerprint, torch_version, ancestry, *folders)
        write_json(folder / RUN_FILE, self.settings.as_json())
        return config.model_dump_json(), checkpoint.name if checkpoint is not None else None

    def batches(self, config: RunConfig) -> BatchSource[Any]:
        """Return the training batches, which are built once."""
        if self._batches is None:
            self._batches = task_of(config).batches(self.prepared.train, config, self.device)
        return self._batches

    def _require_same_run(self, settings: RunSettings, checkpoint: Path) -> None:
        """Raise CheckpointError if a checkpoint was made with other settings than those of the run."""
        if not (self.folder / RUN_FILE).exists():
            self.log(f"warning: {RUN_FILE} is missing; it is written again from {checkpoint.name}")
        if not require_made_by(checkpoint, settings, self.folder):
            self.log(
                f"warning: {checkpoint.name} is of an earlier version without a copy of {RUN_FILE}; changes to "
                f"{RUN_FILE} since then cannot be detected"
            )

    def update(
        self,
        config: RunConfig,
        checkpoint: str | None,
        *,
        listeners: Sequence[Listener],
        should_stop: Callable[[], bool],
        context: AbstractContextManager[object] | None,
    ) -> tuple[StopReason, int]:
        """Run the update loop, resuming from ``checkpoint``; return why it ended and the number of updates."""
        training, prepared, task = config.training, self.prepared, task_of(config)
        torch.manual_seed(training.seed)
        model = make_model(config.model, prepared.tokenizers).to(self.device)
        if checkpoint is None and training.init_from is not None:
            path = Path(training.init_from)
            taken = take_weights(model, config.model, prepared.tokenizers, read_saved_weights(path))
            for line in taken.lines(path):
                self.log(line)
            if len(taken.taken) > len(taken.drawn) and (warning := overwriting(config, path)):
                self.log(warning)
        if checkpoint is None:
            task.start_model(model, prepared, config)
        if self.is_sharded:
            shard(model)
        objective = task.objective(model, config)

        def full_model() -> nn.Module:
            return self._full_model(config, model)

        validate = task.validator(full_model, prepared, config, device=self.device, distributed=self.distributed)
        if validate is not None:
            validate = task.with_objective(
                validate, objective, full_model, prepared, config, distributed=self.distributed
            )
        trainer: Trainer[Any] = Trainer(
            model=model,
            objective=objective,
            batches=self.batches(config),
            learning_rate=lambda step: learning_rate(
                step, d_model=config.model.d_model, config=training, elapsed_s=trainer.shared_elapsed_s
            ),
            config=training,
            checkpoints=self.folder / CHECKPOINTS,
            validate=validate,
            listeners=listeners if self.distributed.is_first else (),
            should_stop=should_stop,
            distributed=self.distributed,
            run_settings=None if self.settings is None else self.settings.as_json(),
        )
        if checkpoint is not None:
            path = self.folder / CHECKPOINTS / checkpoint
            trainer.resume(path)
            self.log(f"resumed from {checkpoint}")
            self.distributed.broadcast_from_first(lambda: self._set_aside(path))
        if training.precision == "bf16" and fast_precision(self.device) == "fp32":
            self.log(
                "warning: this processor has no bf16 arithmetic, so that training takes several times as long as with "
                "--set training.precision=fp32"
            )
        metrics = _metrics_listeners(self.folder, trainer, self.log) if self.distributed.is_first else nullcontext()
        if self.distributed.is_first:
            trainer.listeners.append(self._on_record)
        with metrics, context or nullcontext():
            reason = trainer.run()
        self._restore_run_file()
        return reason, trainer.state.update

    def _set_aside(self, checkpoint: Path) -> None:
        set_aside_newer(checkpoint)
        set_aside_misnamed(checkpoint.parent, self.log)

    def _on_record(self, record: Record) -> None:
        if isinstance(record, CheckpointRecord):
            self._restore_run_file()

    def _restore_run_file(self) -> None:
        """Write ``run.json`` again if it was removed or changed during the run."""
        if self.settings is None:
            return
        path, values = self.folder / RUN_FILE, self.settings.as_json()
        with suppress(CheckpointError):
            if read_json(path, error=CheckpointError) == values:
                return
        try:
            write_json(path, values)
            self.log(f"warning: {path} was removed or changed during the run; it has been restored")
        except OSError as error:
            hint = "the run continues, and its checkpoints have a copy"
            self.log(f"warning: {path} was removed or changed, and cannot be written: {error.strerror}; {hint}")

    def end(self, reason: StopReason, updates: int, extra_bleus: Collection[TokenisedBleu] | None) -> RunResult:
        """Average checkpoints into a model folder and evaluate it."""
        self.log(f"training ended after {updates:,} updates ({reason})")
        assert self.settings is not None
        prepared = open_prepared(self.prepared.folder)  # opened again: its text may have changed during the run
        model_folder, scores, split = average_run(
            self.folder,
            device=self.device,
            extra_bleus=extra_bleus,
            settings=self.settings,
            prepared=prepared,
            log=self.log,
        )
        scored_text = prepared.text_names[split] if split else None
        return RunResult(self.folder, reason, updates, model_folder, scores, split, scored_text)

    def _require_memory(self, model_config: ModelConfig, config: RunConfig) -> None:
        require_memory_to_train(
            model_config, config.training, self.device, distributed=self.distributed, is_sharded=self.is_sharded
        )

    def _full_model(self, config: RunConfig, model: nn.Module) -> nn.Module:
        """Return the model, or a copy with the full weights if it is sharded."""
        if not self.is_sharded:
            return model
        copy = make_model(config.model, self.prepared.tokenizers).to(self.device).eval()
        load_weights(copy, full_weights(model), where=self.folder)
        return copy


def _prepared(
    config: RunConfig, folder: Path, store: Path | None, data_folder: Path | None, log: Callable[[str], None]
) -> Prepared:
    """Return the prepared text of a run: ``store``, that of an earlier session, or a new one."""
    path = store or store_of(folder)
    is_own = store is None and path == folder / STORE
    is_empty = is_own and path.is_dir() and not any(path.iterdir())  # made in advance
    if store is not None or (path.exists() and not is_empty):
        return open_prepared(path, expected=config.data)
    if not is_own:
        raise DataError(f"the prepared text of {folder} is missing at {path}; restore it, or name it with --store")
    return prepare(config.data, path, data_folder=data_folder, log=log)


@contextmanager
def _metrics_listeners(folder: Path, trainer: Trainer[Any], log: Callable[[str], None]) -> Iterator[None]:
    """Add the listeners for metrics and TensorBoard; records of earlier sessions past the checkpoint are removed."""
    metrics = MetricsFile(folder / METRICS_FILE)
    metrics.rewind(trainer.state)
    trainer.listeners.append(metrics)
    if not TensorBoardEvents.is_available():
        yield
        return
    events = TensorBoardEvents(folder / TENSORBOARD, updates_done=trainer.state.update, log=log)
    trainer.listeners.append(events)
    try:
        yield
    finally:
        events.close()
