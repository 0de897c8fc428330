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
from transduce.files import read_json, write_json
from transduce.metrics import TokenisedBleu
from transduce.tasks.average import average_run
from transduce.tasks.model_memory import require_room_to_train
from transduce.tasks.preparation import Prepared, open_prepared, prepare
from transduce.tasks.registry import task_of
from transduce.tasks.run_file import (
    CHECKPOINTS,
    RUN_FILE,
    RunSettings,
    holds_run,
    read_run_file,
    require_made_by,
    require_run,
    resume_config,
)
from transduce.tasks.run_folder import (
    METRICS_FILE,
    STORE,
    STORE_POINTER,
    TENSORBOARD,
    require_own_folder,
    require_same_data,
    store_of,
)
from transduce.tasks.run_lock import run_lock
from transduce.tasks.task import Scores
from transduce.training import (
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

LEAST_VOCABULARY = 4  # of special symbols: how many more there are, the text will tell


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run has come to."""

    folder: Path
    reason: StopReason
    updates: int
    model_folder: Path | None  # None: stopped by request, to be resumed
    scores: Scores | None  # of the averaged model on test, or on dev where there is no test
    scored_split: str | None
    scored_text: str | None  # what the text of that split is called


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
    also: Collection[TokenisedBleu] | None = None,
    listeners: Sequence[Listener] = (),
    should_stop: Callable[[], bool] = lambda: False,
    while_training: AbstractContextManager[object] | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> RunResult:
    """Train a translator, or a parser, as ``config`` says; end with an averaged and evaluated model folder.

    All of it is in ``folder``, which is made; with ``resume`` it holds the run to go on with.
    ``store`` is a prepared folder to read instead of preparing the text anew; ``data_folder`` is where corpora are
    looked for first. ``distributed`` are those that train together, with the model divided among them (FSDP2) if
    ``is_sharded``. ``break_lock``: the process of another machine that wrote the run is gone. ``also`` names tokenised
    BLEUs for the evaluation at the end; without, those that are customary for its text. ``should_stop`` is asked
    before each update and during validation; ``while_training`` is entered for just the time of the updates, when it is
    of use (signal handlers). ``log`` receives lines about each step; it and ``listeners`` do so in the first process.
    Raises ConfigError, DataError, CheckpointError or TrainingError; what is on the disk stays usable.
    """
    distributed = distributed or DistributedContext()
    task_of(config)  # what is not known is refused before anything is made
    if is_sharded and distributed.n == 1:
        raise ConfigError("a model is divided among several processes; start them with torchrun, or leave out --shard")
    if is_sharded and config.training.optimiser == "muon":
        raise ConfigError("training.optimiser = 'muon' takes whole matrices; leave out --shard, or use adam")
    with run_lock(folder, break_lock=break_lock) if distributed.is_first else nullcontext():
        run = _Run(folder, torch.device(device), distributed, is_sharded=is_sharded, log=log)
        begun, checkpoint = distributed.broadcast_from_first(
            lambda: run.begin(config, resume=resume, store=store, data_folder=data_folder)
        )
        reason, updates = run.update(
            RunConfig.model_validate_json(begun),
            checkpoint,
            listeners=listeners,
            should_stop=should_stop,
            around=while_training,
        )
        if reason == "interrupted" or not distributed.is_first:
            return RunResult(folder, reason, updates, None, None, None, None)
        return run.end(reason, updates, also)


class _Run:
    """A run in one process, from its beginning to its end."""

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
        self.begun: RunSettings | None = None  # in the first process, once it has begun

    @cached_property
    def prepared(self) -> Prepared:
        """The text of a run that has begun."""
        return open_prepared(store_of(self.folder))

    def begin(
        self, config: RunConfig, *, resume: bool, store: Path | None, data_folder: Path | None
    ) -> tuple[str, str | None]:
        """Prepare the text, and write down what is run. Only the first process does.

        Returns the settings as JSON, and the name of the checkpoint to go on from, if there is one.
        """
        folder = self.folder
        require_own_folder(folder)
        has_run = holds_run(folder)
        if resume:
            require_run(folder)
        if has_run and not resume:
            raise TrainingError(f"{folder} holds a run already; add --resume to go on with it, or name another --out")
        before = read_run_file(folder) if has_run else None
        found = newest_complete(folder / CHECKPOINTS, self.log)
        if before is not None and found is not None:
            self._require_same_run(before, found)
        if before is not None and any((folder / CHECKPOINTS).glob("*update-*")):  # else nothing depends on it
            config = resume_config(folder, config)
        self._require_room(config.model.with_vocabulary(LEAST_VOCABULARY, LEAST_VOCABULARY), config)  # before hours
        self.prepared = prepared = _prepared(config, folder, store, data_folder, self.log)
        if before is not None:
            require_same_data(folder, before, prepared)
        if store is not None and not (folder / STORE).exists():
            write_json(folder / STORE_POINTER, {"folder": str(store.resolve())})
        model_config = task_of(config).model_config(config.model, prepared.tokenizers)
        config = config.model_copy(update={"model": model_config})
        self._require_room(model_config, config)
        batches = task_of(config).batches(prepared.train, config, self.device)
        if isinstance(batches, StoreBatches):
            first = batches.statistics(epoch=0)
            self.log(
                f"an epoch: {first.n_batches:,} batches, {first.n_src_tokens:,} source and {first.n_tgt_tokens:,} "
                f"target tokens, {first.padding_fraction:.1%} padding"
            )
        if prepared.dev is None:
            self.log("no dev text: there is no validation, no best checkpoint, and patience has nothing to wait for")
        torch_version = before.torch if before is not None else str(torch.__version__)
        self.begun = RunSettings(config, prepared.fingerprint, torch_version)
        write_json(folder / RUN_FILE, self.begun.as_json())
        return config.model_dump_json(), found.name if found is not None else None

    def _require_same_run(self, begun: RunSettings, checkpoint: Path) -> None:
        """Raises CheckpointError if a checkpoint was made with something else than ``run.json`` says."""
        if not (self.folder / RUN_FILE).exists():
            self.log(f"warning: {RUN_FILE} is gone; it is written again as {checkpoint.name} has it")
        if not require_made_by(checkpoint, begun, self.folder):
            self.log(
                f"warning: {checkpoint.name} is of an earlier version, which kept no copy of {RUN_FILE}; whether that "
                "was changed since cannot be seen"
            )

    def update(
        self,
        config: RunConfig,
        found: str | None,
        *,
        listeners: Sequence[Listener],
        should_stop: Callable[[], bool],
        around: AbstractContextManager[object] | None,
    ) -> tuple[StopReason, int]:
        """Make the updates, from the checkpoint ``found`` on; returns why they ended and how many there are."""
        training, prepared, task = config.training, self.prepared, task_of(config)
        torch.manual_seed(training.seed)
        model = task.build_model(config.model, prepared.tokenizers).to(self.device)
        if self.is_sharded:
            shard(model)
        trainer: Trainer[Any] = Trainer(
            model=model,
            objective=task.objective(model, training),
            batches=task.batches(prepared.train, config, self.device),
            learning_rate=lambda step: learning_rate(step, d_model=config.model.d_model, config=training),
            config=training,
            checkpoints=self.folder / CHECKPOINTS,
            validate=task.validator(
                lambda: self._undivided(config, model),
                prepared,
                config,
                device=self.device,
                distributed=self.distributed,
            ),
            listeners=listeners if self.distributed.is_first else (),
            should_stop=should_stop,
            distributed=self.distributed,
            run_settings=None if self.begun is None else self.begun.as_json(),
        )
        if found is not None:
            trainer.resume(self.folder / CHECKPOINTS / found)
            self.log(f"resumed from {found}")
            self.distributed.broadcast_from_first(lambda: self._set_aside(self.folder / CHECKPOINTS / found))
        curves = _curves(self.folder, trainer, self.log) if self.distributed.is_first else nullcontext()
        if self.distributed.is_first:
            trainer.listeners.append(self._keep_run_file)
        with curves, around or nullcontext():
            reason = trainer.run()
        self._restore_run_file()
        return reason, trainer.state.update

    def _set_aside(self, found: Path) -> None:
        set_aside_newer(found)
        set_aside_misnamed(found.parent, self.log)

    def _keep_run_file(self, record: Record) -> None:
        if isinstance(record, CheckpointRecord):
            self._restore_run_file()

    def _restore_run_file(self) -> None:
        """Write ``run.json`` again if somebody has removed or changed it while the run went on."""
        if self.begun is None:
            return
        path, values = self.folder / RUN_FILE, self.begun.as_json()
        with suppress(CheckpointError):
            if read_json(path, error=CheckpointError) == values:
                return
        try:
            write_json(path, values)
            self.log(f"warning: {path} was removed or changed while the run went on; it is as it was again")
        except OSError as error:
            kept = "the run goes on, and its checkpoints have a copy"
            self.log(f"warning: {path} was removed or changed, and cannot be written: {error.strerror}; {kept}")

    def end(self, reason: StopReason, updates: int, also: Collection[TokenisedBleu] | None) -> RunResult:
        """Average the last checkpoints into a model folder and evaluate it."""
        self.log(f"training ended after {updates:,} updates ({reason})")
        assert self.begun is not None
        prepared = open_prepared(self.prepared.folder)  # anew, since what it is evaluated on may have changed
        model_folder, scores, split = average_run(
            self.folder,
            last=self.begun.config.training.average_last,
            device=self.device,
            also=also,
            begun=self.begun,
            prepared=prepared,
            log=self.log,
        )
        scored_text = prepared.text_names[split] if split else None
        return RunResult(self.folder, reason, updates, model_folder, scores, split, scored_text)

    def _require_room(self, model_config: ModelConfig, config: RunConfig) -> None:
        require_room_to_train(
            model_config, config.training, self.device, distributed=self.distributed, is_sharded=self.is_sharded
        )

    def _undivided(self, config: RunConfig, model: nn.Module) -> nn.Module:
        """The model, or a copy with all its weights where it is divided among processes."""
        if not self.is_sharded:
            return model
        copy = task_of(config).build_model(config.model, self.prepared.tokenizers).to(self.device).eval()
        load_weights(copy, full_weights(model), where=self.folder)
        return copy


def _prepared(
    config: RunConfig, folder: Path, store: Path | None, data_folder: Path | None, log: Callable[[str], None]
) -> Prepared:
    """The prepared text of a run: made, found from an earlier sitting, or a folder given."""
    kept = store or store_of(folder)
    if store is not None or kept.exists():
        return open_prepared(kept, expected=config.data)
    if kept != folder / STORE:
        raise DataError(
            f"the prepared text of {folder} is not at {kept} any more; bring it back, or say with --store where it is"
        )
    return prepare(config.data, kept, data_folder=data_folder, log=log)


@contextmanager
def _curves(folder: Path, trainer: Trainer[Any], log: Callable[[str], None]) -> Iterator[None]:
    """Let the run write its records, from where it stands: what an earlier sitting wrote past that is forgotten."""
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
