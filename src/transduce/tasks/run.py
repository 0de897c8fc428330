"""A run from recipe to model folder: prepare, train, average, evaluate. Sections 5 and 6.1.

A run folder::

    run.json    what the run was begun with; each checkpoint has a copy
    metrics.jsonl  tensorboard/
    store/    the prepared text; or prepared_at.json, which says where it lies
    checkpoints/update-00001000/
    not-finite/    batches that were left out, or ended the run
    model/     the averaged model folder
    lock.json    while a process writes

Several processes train one run together; the first of them writes. A folder in it may be a link, to a larger disk for
instance; a file may not: nothing is written, or read, through one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from transduce.config import ModelConfig, RunConfig
from transduce.data import Batch, BatchStatistics
from transduce.errors import CheckpointError, ConfigError, DataError, TrainingError
from transduce.files import is_leftover, read_json, remove, require_regular, write_json
from transduce.metrics import TokenisedBleu, TranslationScores, customary_bleus
from transduce.model import EncoderDecoder
from transduce.tasks.evaluation import evaluate
from transduce.tasks.line_statistics import LineStatistics, line_statistics
from transduce.tasks.model_card import model_card
from transduce.tasks.model_folder import Task, model_over, write_model_card, write_model_folder
from transduce.tasks.model_memory import require_room_to_train
from transduce.tasks.objective import PairObjective, StoreBatches
from transduce.tasks.parser import Parser
from transduce.tasks.parsing import ParsingScores, ParsingValidation, evaluate_parser
from transduce.tasks.preparation import Prepared, open_prepared, prepare
from transduce.tasks.run_file import (
    CHECKPOINTS,
    RUN_FILE,
    BegunWith,
    holds_run,
    read_run_config,
    read_run_file,
    require_made_by,
    require_run,
    resume_config,
)
from transduce.tasks.run_lock import LOCK_FILE, only_writer
from transduce.tasks.translation import TranslationValidation
from transduce.tasks.translator import Translator
from transduce.training import (
    CheckpointRecord,
    Listener,
    MetricsFile,
    Processes,
    Record,
    StopReason,
    TensorBoardEvents,
    Trainer,
    average_weights,
    averaged_checkpoints,
    checkpoint_folders,
    learning_rate,
    load_weights,
    newest_complete,
    read_state,
    set_aside_misnamed,
    set_aside_newer,
    shard,
    whole_weights,
)

__all__ = [
    "CHECKPOINTS", "RUN_FILE", "RunResult", "average_run", "holds_run", "read_run_config", "require_own_entries",
    "require_run", "resume_config", "scores_of", "task_of", "train",
]  # fmt: skip

METRICS_FILE, STORE_POINTER = "metrics.jsonl", "prepared_at.json"
STORE, TENSORBOARD, MODEL, NOT_FINITE = "store", "tensorboard", "model", "not-finite"
LEAST_VOCABULARY = 4  # of special symbols: how many more there are, the text will tell


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run has come to."""

    folder: Path
    reason: StopReason
    updates: int
    model_folder: Path | None  # None: stopped by request, to be resumed
    scores: TranslationScores | ParsingScores | None  # of the averaged model on test, or on dev where there is no test
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
    processes: Processes | None = None,
    is_sharded: bool = False,
    break_lock: bool = False,
    also: Collection[TokenisedBleu] | None = None,
    listeners: Sequence[Listener] = (),
    should_stop: Callable[[], bool] = lambda: False,
    while_training: AbstractContextManager[object] | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> RunResult:
    """Train a translator, or a parser, as ``config`` says; end with an averaged and evaluated model folder.

    All of it is in ``folder``, which is made; with ``resume`` it holds the run to go on with.
    ``store`` is a prepared folder to read instead of preparing the text anew; ``data_folder`` is where corpora are
    looked for first. ``processes`` are those that train together, with the model divided among them (FSDP2) if
    ``is_sharded``. ``break_lock``: the process of another machine that wrote the run is gone. ``also`` names tokenised
    BLEUs for the evaluation at the end; without, those that are customary for its text. ``should_stop`` is asked
    before each update and during validation; ``while_training`` is entered for just the time of the updates, when it is
    of use (signal handlers). ``tell`` receives lines about each step; it and ``listeners`` do so in the first process.
    Raises ConfigError, DataError, CheckpointError or TrainingError; what is on the disk stays usable.
    """
    processes = processes or Processes()
    if is_sharded and processes.n == 1:
        raise ConfigError("a model is divided among several processes; start them with torchrun, or leave out --shard")
    if is_sharded and config.training.optimiser == "muon":
        raise ConfigError("training.optimiser = 'muon' takes whole matrices; leave out --shard, or use adam")
    with only_writer(folder, break_lock=break_lock) if processes.is_first else nullcontext():
        run = _Run(folder, torch.device(device), processes, is_sharded=is_sharded, tell=tell)
        begun, checkpoint = processes.first(
            lambda: run.begin(config, resume=resume, store=store, data_folder=data_folder)
        )
        reason, updates = run.update(
            RunConfig.model_validate_json(begun),
            checkpoint,
            listeners=listeners,
            should_stop=should_stop,
            around=while_training,
        )
        if reason == "asked" or not processes.is_first:
            return RunResult(folder, reason, updates, None, None, None, None)
        return run.end(reason, updates, also)


class _Run:
    """A run in one process, from its beginning to its end."""

    def __init__(
        self,
        folder: Path,
        device: torch.device,
        processes: Processes,
        *,
        is_sharded: bool,
        tell: Callable[[str], None],
    ) -> None:
        self.folder, self.device, self.processes, self.is_sharded = folder, device, processes, is_sharded
        self.tell = tell if processes.is_first else lambda line: None
        self.begun: BegunWith | None = None  # in the first process, once it has begun

    @cached_property
    def prepared(self) -> Prepared:
        """The text of a run that has begun."""
        return open_prepared(_store_of(self.folder))

    def begin(
        self, config: RunConfig, *, resume: bool, store: Path | None, data_folder: Path | None
    ) -> tuple[str, str | None]:
        """Prepare the text, and write down what is run. Only the first process does.

        Returns the settings as JSON, and the name of the checkpoint to go on from, if there is one.
        """
        folder = self.folder
        _require_own_folder(folder)
        has_run = holds_run(folder)
        if resume:
            require_run(folder)
        if has_run and not resume:
            raise TrainingError(f"{folder} holds a run already; add --resume to go on with it, or name another --out")
        before = read_run_file(folder) if has_run else None
        found = newest_complete(folder / CHECKPOINTS, self.tell)
        if before is not None and found is not None:
            self._require_same_run(before, found)
        if before is not None and any((folder / CHECKPOINTS).glob("*update-*")):  # else nothing depends on it
            config = resume_config(folder, config)
        self._require_room(config.model.with_vocabulary(LEAST_VOCABULARY, LEAST_VOCABULARY), config)  # before hours
        self.prepared = prepared = _prepared(config, folder, store, data_folder, self.tell)
        if before is not None:
            _check_same_data(folder, before, prepared)
        if store is not None and not (folder / STORE).exists():
            write_json(folder / STORE_POINTER, {"folder": str(store.resolve())})
        model_config = config.model.with_vocabulary(prepared.tokenizers.src.size, prepared.tokenizers.tgt.size)
        config = config.model_copy(update={"model": model_config})
        self._require_room(model_config, config)
        self.tell(_sentence_about_batches(self._batches(config).statistics(epoch=0)))
        if prepared.dev is None:
            self.tell("no dev text: there is no validation, no best checkpoint, and patience has nothing to wait for")
        begun_with = before.torch if before is not None else str(torch.__version__)
        self.begun = BegunWith(config, prepared.fingerprint, begun_with)
        write_json(folder / RUN_FILE, self.begun.as_json())
        return config.model_dump_json(), found.name if found is not None else None

    def _require_same_run(self, begun: BegunWith, checkpoint: Path) -> None:
        """Raises CheckpointError if a checkpoint was made with something else than ``run.json`` says."""
        if not (self.folder / RUN_FILE).exists():
            self.tell(f"warning: {RUN_FILE} is gone; it is written again as {checkpoint.name} has it")
        if not require_made_by(checkpoint, begun, self.folder):
            self.tell(
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
        torch.manual_seed(config.training.seed)
        model = model_over(self.prepared.tokenizers, config.model, task_of(config)).to(self.device)
        if self.is_sharded:
            shard(model)
        trainer = self._trainer(config, model, listeners=listeners, should_stop=should_stop)
        if found is not None:
            trainer.resume(self.folder / CHECKPOINTS / found)
            self.tell(f"resumed from {found}")
            self.processes.first(lambda: self._set_aside(self.folder / CHECKPOINTS / found))
        curves = _curves(self.folder, trainer, self.tell) if self.processes.is_first else nullcontext()
        if self.processes.is_first:
            trainer.listeners.append(self._keep_run_file)
        with curves, around or nullcontext():
            reason = trainer.run()
        self._restore_run_file()
        return reason, trainer.state.update

    def _set_aside(self, found: Path) -> None:
        set_aside_newer(found)
        set_aside_misnamed(found.parent, self.tell)

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
            self.tell(f"warning: {path} was removed or changed while the run went on; it is as it was again")
        except OSError as error:
            kept = "the run goes on, and its checkpoints have a copy"
            self.tell(f"warning: {path} was removed or changed, and cannot be written: {error.strerror}; {kept}")

    def end(self, reason: StopReason, updates: int, also: Collection[TokenisedBleu] | None) -> RunResult:
        """Average the last checkpoints into a model folder and evaluate it."""
        self.tell(f"training ended after {updates:,} updates ({reason})")
        assert self.begun is not None
        prepared = open_prepared(self.prepared.folder)  # anew, since what it is evaluated on may have changed
        model_folder, scores, split = _average(
            self.folder,
            self.begun,
            prepared,
            last=self.begun.config.training.average_last,
            out=None,
            device=self.device,
            also=also,
            tell=self.tell,
        )
        scored_text = prepared.text_names[split] if split else None
        return RunResult(self.folder, reason, updates, model_folder, scores, split, scored_text)

    def _require_room(self, model_config: ModelConfig, config: RunConfig) -> None:
        n = self.processes.n
        require_room_to_train(model_config, config.training, self.device, n_processes=n, is_sharded=self.is_sharded)

    def _batches(self, config: RunConfig) -> StoreBatches:
        training = config.training
        return StoreBatches(
            self.prepared.train,
            max_tokens=training.max_tokens_per_batch,
            seed=training.seed,
            device=self.device,
            weights=config.data.weights,
            both_ways_epochs=training.both_ways_epochs,
        )

    def _trainer(
        self,
        config: RunConfig,
        model: EncoderDecoder,
        *,
        listeners: Sequence[Listener],
        should_stop: Callable[[], bool],
    ) -> Trainer[Batch]:
        training, prepared = config.training, self.prepared
        text = prepared.text("dev")
        validate = None
        if prepared.dev is not None and text is not None:
            validation = ParsingValidation if config.data.target == "trees" else TranslationValidation
            validate = validation(
                lambda: self._undivided(model, task_of(config)),
                prepared.tokenizers,
                prepared.dev,
                text,
                config,
                device=self.device,
                processes=self.processes,
            )
        return Trainer(
            model=model,
            objective=PairObjective(model, training),
            batches=self._batches(config),
            learning_rate=lambda step: learning_rate(step, d_model=config.model.d_model, config=training),
            config=training,
            checkpoints=self.folder / CHECKPOINTS,
            validate=validate,
            listeners=listeners if self.processes.is_first else (),
            should_stop=should_stop,
            processes=self.processes,
            begun_with=None if self.begun is None else self.begun.as_json(),
        )

    def _undivided(self, model: EncoderDecoder, task: Task) -> EncoderDecoder:
        """The model, or a copy with all its weights where it is divided among processes."""
        if not self.is_sharded:
            return model
        copy = model_over(self.prepared.tokenizers, model.config, task).to(self.device).eval()
        load_weights(copy, whole_weights(model), where=self.folder)
        return copy


def _require_own_folder(folder: Path) -> None:
    """Raises TrainingError if there is something else in a folder than a run, or what one begins with.

    What a killed process has left of its files is removed.
    """
    begins_with = {STORE, STORE_POINTER, LOCK_FILE}
    strangers = []
    for path in folder.iterdir():
        if any(is_leftover(path, of=name) for name in begins_with | {RUN_FILE, METRICS_FILE}):
            if path.is_symlink() or not path.is_dir():  # folders are removed by who makes them anew
                remove(path)
        elif path.name not in begins_with:
            strangers.append(path)
    if strangers and not holds_run(folder):
        if checkpoint_folders(folder / CHECKPOINTS):
            require_run(folder)
        raise TrainingError(f"{folder} is not empty and holds no run; name another --out")
    require_own_entries(folder)


def require_own_entries(folder: Path) -> None:
    """Raises TrainingError if a file of a run folder is none, or a folder none, or a link to somebody else's."""
    for name in (RUN_FILE, METRICS_FILE, STORE_POINTER):
        if os.path.lexists(folder / name):
            require_regular(folder / name, error=TrainingError)
    for name in (STORE, CHECKPOINTS, TENSORBOARD, MODEL, NOT_FINITE):
        path = folder / name
        if os.path.lexists(path) and not path.is_dir():
            what = "a link to no folder" if path.is_symlink() else "no folder"
            raise TrainingError(f"{path} is {what}, and a run has a folder there; move it away")
        is_written = name != STORE and os.path.lexists(path)
        if is_written and path.is_symlink() and not _is_own(path):
            raise TrainingError(f"{path} leads to the folder of another user, {path.resolve()}; move it away")


def _is_own(path: Path) -> bool:
    """Whether a folder is of who runs this; the administrator may have any."""
    return not hasattr(os, "geteuid") or os.geteuid() in (0, path.stat().st_uid)


def average_run(
    folder: Path,
    *,
    last: int,
    out: Path | None = None,
    device: str | torch.device = "cpu",
    also: Collection[TokenisedBleu] | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[Path, TranslationScores | ParsingScores | None, str | None]:
    """Average the newest ``last`` scheduled checkpoints into a model folder, evaluate it and write its card.

    ``also`` is as for ``train``. Returns the folder, the scores and the split that they are of.
    Raises CheckpointError if there is no checkpoint.
    """
    begun = read_run_file(folder)
    prepared = open_prepared(_store_of(folder))
    return _average(folder, begun, prepared, last=last, out=out, device=device, also=also, tell=tell)


def _average(
    folder: Path,
    begun: BegunWith,
    prepared: Prepared,
    *,
    last: int,
    out: Path | None,
    device: str | torch.device,
    also: Collection[TokenisedBleu] | None,
    tell: Callable[[str], None],
) -> tuple[Path, TranslationScores | ParsingScores | None, str | None]:
    """``average_run``, of a run whose beginning and text have been read."""
    config = begun.config
    chosen = averaged_checkpoints(folder / CHECKPOINTS, last)
    if not chosen:
        raise CheckpointError(f"{folder / CHECKPOINTS} has no checkpoint; train first")
    for checkpoint in reversed(chosen):
        require_made_by(checkpoint, begun, folder)
    _check_same_data(folder, begun, prepared)
    weights = average_weights(chosen)
    model_folder = out or folder / MODEL

    state = read_state(chosen[-1])
    write_model_folder(
        model_folder,
        config=config.model,
        weights=weights,
        tokenizers=prepared.tokenizers,
        search=config.search,
        direction=config.data.direction,
        task=task_of(config),
        card=model_card(config, prepared, state, n_averaged=len(chosen)),
        statistics=_line_statistics(config, prepared),
    )
    tell(f"averaged {len(chosen)} checkpoints into {model_folder}")
    test, dev = prepared.text("test"), prepared.text("dev")
    text, split = (test, "test") if test else (dev, "dev")
    if text is None:
        return model_folder, None, None
    doing = "parsing" if task_of(config) == "parsing" else "translating"
    tell(f"{doing} {len(text[0]):,} sentences of {prepared.text_names[split]}")
    if also is None:
        also = customary_bleus(prepared.text_names[split])
    scores = scores_of(model_folder, task_of(config), text, device=device, also=also)
    write_model_card(
        model_folder, model_card(config, prepared, state, n_averaged=len(chosen), scores=scores, split=split)
    )
    return model_folder, scores, split


def _line_statistics(config: RunConfig, prepared: Prepared) -> LineStatistics | None:
    """What a translator should know of the text that it was trained on."""
    if task_of(config) != "translation":
        return None
    return line_statistics(prepared.train, prepared.tokenizers, config.data.src_language)


def scores_of(
    model_folder: Path,
    task: Task,
    text: tuple[list[str], list[str]],
    *,
    device: str | torch.device = "cpu",
    also: Collection[TokenisedBleu] = (),
) -> TranslationScores | ParsingScores:
    """What a model folder comes to on prepared text: sources, and translations or symbols of trees."""
    if task == "parsing":
        return evaluate_parser(Parser.load(model_folder, device=device), *text)
    return evaluate(Translator.load(model_folder, device=device), *text, also=also).scores


def task_of(config: RunConfig) -> Task:
    """What a run trains for."""
    return "parsing" if config.data.target == "trees" else "translation"


def _prepared(
    config: RunConfig, folder: Path, store: Path | None, data_folder: Path | None, tell: Callable[[str], None]
) -> Prepared:
    """The prepared text of a run: made, found from an earlier sitting, or a folder given."""
    if store is not None:
        return open_prepared(store, expected=config.data)
    kept = _store_of(folder)
    if kept.exists():
        return open_prepared(kept, expected=config.data)
    if kept != folder / STORE:
        raise DataError(
            f"the prepared text of {folder} is not at {kept} any more; bring it back, or say with --store where it is"
        )
    return prepare(config.data, kept, data_folder=data_folder, tell=tell)


def _check_same_data(folder: Path, begun: BegunWith, prepared: Prepared) -> None:
    """Raises DataError if a run was begun on other ids than those in ``prepared``."""
    if begun.data_fingerprint != prepared.fingerprint:
        raise DataError(
            f"{prepared.folder} is not what the run in {folder} was begun with: its fingerprint is "
            f"{prepared.fingerprint[:12]}, it was {begun.data_fingerprint[:12]}; give the folder of then, or begin a "
            "new run"
        )


def _sentence_about_batches(statistics: BatchStatistics) -> str:
    """How the first epoch looks: how many batches, how many real tokens, how much padding."""
    return (
        f"an epoch: {statistics.n_batches:,} batches, {statistics.n_src_tokens:,} source and "
        f"{statistics.n_tgt_tokens:,} target tokens, {statistics.padding_share:.1%} padding"
    )


def _store_of(folder: Path) -> Path:
    """Where the prepared text of a run lies: inside it, or where ``prepared_at.json`` points."""
    pointer = folder / STORE_POINTER
    if not os.path.lexists(pointer):
        return folder / STORE
    place = read_json(pointer).get("folder")
    if not isinstance(place, str):
        raise DataError(f"{pointer} should name the folder of the prepared text; name it anew with --store")
    return Path(place)


@contextmanager
def _curves(folder: Path, trainer: Trainer[Batch], tell: Callable[[str], None]) -> Iterator[None]:
    """Let the run write its records, from where it stands: what an earlier sitting wrote past that is forgotten."""
    metrics = MetricsFile(folder / METRICS_FILE)
    metrics.rewind(trainer.state)
    trainer.listeners.append(metrics)
    if not TensorBoardEvents.is_available():
        yield
        return
    events = TensorBoardEvents(folder / TENSORBOARD, updates_done=trainer.state.update, tell=tell)
    trainer.listeners.append(events)
    try:
        yield
    finally:
        events.close()
