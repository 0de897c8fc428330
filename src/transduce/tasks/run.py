"""A run from recipe to model folder: prepare, train, average, evaluate. Sections 5 and 6.1.

A run folder::

    run.json  metrics.jsonl  tensorboard/
    store/    the prepared text; or prepared_at.json, which says where it lies
    checkpoints/update-00001000/
    not-finite/    batches that were left out, or ended the run
    model/     the averaged model folder
    lock.json    while a process writes

Several processes train one run together; the first of them writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from transduce.config import ModelConfig, RunConfig, config_from_mapping
from transduce.data import Batch, BatchStatistics
from transduce.errors import CheckpointError, ConfigError, DataError, TrainingError
from transduce.files import is_leftover, read_json, write_json
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
from transduce.tasks.run_lock import LOCK_FILE, only_writer
from transduce.tasks.translation import TranslationValidation
from transduce.tasks.translator import Translator
from transduce.training import (
    Listener,
    MetricsFile,
    Processes,
    StopReason,
    TensorBoardEvents,
    Trainer,
    average_weights,
    averaged_checkpoints,
    learning_rate,
    load_weights,
    newest_complete,
    read_state,
    set_aside_newer,
    shard,
    whole_weights,
)

__all__ = [
    "RunResult", "average_run", "holds_run", "read_run_config", "require_run", "resume_config", "task_of", "train",
]  # fmt: skip

RUN_FILE, METRICS_FILE, STORE_POINTER = "run.json", "metrics.jsonl", "prepared_at.json"
STORE, CHECKPOINTS, TENSORBOARD, MODEL = "store", "checkpoints", "tensorboard", "model"

LEAST_VOCABULARY = 4  # of special symbols: how many more there are, the text will tell

# What may be different when a run goes on: how long it is and how it is watched and kept, not what it computes.
CHANGEABLE = frozenset(
    f"training.{name}"
    for name in (
        "max_updates",
        "max_minutes",
        "patience",
        "log_every_updates",
        "validate_every_updates",
        "validation_bleu",
        "validation_sentences",
        "checkpoint_every_updates",
        "checkpoint_every_minutes",
        "keep_checkpoints",
        "average_last",
        "n_skippable",
    )
)


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
        begun: str = processes.first(
            lambda: run.begin(config, resume=resume, store=store, data_folder=data_folder).model_dump_json()
        )
        reason, updates = run.update(
            RunConfig.model_validate_json(begun), listeners=listeners, should_stop=should_stop, around=while_training
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

    @cached_property
    def prepared(self) -> Prepared:
        """The text of a run that has begun."""
        return open_prepared(_store_of(self.folder))

    def begin(self, config: RunConfig, *, resume: bool, store: Path | None, data_folder: Path | None) -> RunConfig:
        """Prepare the text, and write down what is run; returns that. Only the first process does."""
        folder = self.folder
        _require_own_folder(folder)
        has_run = holds_run(folder)
        if resume:
            require_run(folder)
        if has_run and not resume:
            raise TrainingError(f"{folder} holds a run already; add --resume to go on with it, or name another --out")
        begun_with = str(torch.__version__)
        if has_run:
            begun_with = str(read_json(folder / RUN_FILE, error=CheckpointError).get("torch"))
        if has_run and any((folder / CHECKPOINTS).glob("*update-*")):  # else nothing depends on what it began with
            config = resume_config(folder, config)
        self._require_room(config.model.with_vocabulary(LEAST_VOCABULARY, LEAST_VOCABULARY), config)  # before hours
        self.prepared = prepared = _prepared(config, folder, store, data_folder, self.tell)
        if has_run:
            _check_same_data(folder, prepared)
        if store is not None and not (folder / STORE).exists():
            write_json(folder / STORE_POINTER, {"folder": str(store.resolve())})
        model_config = config.model.with_vocabulary(prepared.tokenizers.src.size, prepared.tokenizers.tgt.size)
        config = config.model_copy(update={"model": model_config})
        self._require_room(model_config, config)
        self.tell(_sentence_about_batches(self._batches(config).statistics(epoch=0)))
        if prepared.dev is None:
            self.tell("no dev text: there is no validation, no best checkpoint, and patience has nothing to wait for")
        values = {"config": config.model_dump(), "data_fingerprint": prepared.fingerprint, "torch": begun_with}
        write_json(folder / RUN_FILE, values)
        return config

    def update(
        self,
        config: RunConfig,
        *,
        listeners: Sequence[Listener],
        should_stop: Callable[[], bool],
        around: AbstractContextManager[object] | None,
    ) -> tuple[StopReason, int]:
        """Make the updates, from the newest checkpoint on; returns why they ended and how many there are."""
        torch.manual_seed(config.training.seed)
        model = model_over(self.prepared.tokenizers, config.model, task_of(config)).to(self.device)
        if self.is_sharded:
            shard(model)
        trainer = self._trainer(config, model, listeners=listeners, should_stop=should_stop)
        found: str | None = self.processes.first(self._newest_checkpoint)
        if found is not None:
            trainer.resume(self.folder / CHECKPOINTS / found)
            self.tell(f"resumed from {found}")
            self.processes.first(lambda: set_aside_newer(self.folder / CHECKPOINTS / found))
        curves = _curves(self.folder, trainer, self.tell) if self.processes.is_first else nullcontext()
        with curves, around or nullcontext():
            return trainer.run(), trainer.state.update

    def end(self, reason: StopReason, updates: int, also: Collection[TokenisedBleu] | None) -> RunResult:
        """Average the last checkpoints into a model folder and evaluate it."""
        self.tell(f"training ended after {updates:,} updates ({reason})")
        config = read_run_config(self.folder)
        last = config.training.average_last
        model_folder, scores, split = average_run(self.folder, last=last, device=self.device, also=also, tell=self.tell)
        scored_text = self.prepared.text_names[split] if split else None
        return RunResult(self.folder, reason, updates, model_folder, scores, split, scored_text)

    def _require_room(self, model_config: ModelConfig, config: RunConfig) -> None:
        n = self.processes.n
        require_room_to_train(model_config, config.training, self.device, n_processes=n, is_sharded=self.is_sharded)

    def _newest_checkpoint(self) -> str | None:
        path = newest_complete(self.folder / CHECKPOINTS, self.tell)
        return path.name if path else None

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
        )

    def _undivided(self, model: EncoderDecoder, task: Task) -> EncoderDecoder:
        """The model, or a copy with all its weights where it is divided among processes."""
        if not self.is_sharded:
            return model
        copy = model_over(self.prepared.tokenizers, model.config, task).to(self.device).eval()
        load_weights(copy, whole_weights(model), where=self.folder)
        return copy


def holds_run(folder: Path) -> bool:
    """Whether a run has begun in ``folder``: what one that was killed before has left is none yet."""
    return (folder / RUN_FILE).exists()


def require_run(folder: Path) -> None:
    """Raises TrainingError if there is nothing to resume in ``folder``."""
    if not holds_run(folder):
        raise TrainingError(
            f"{folder} holds no run to go on with (there is no {RUN_FILE}); begin it without --resume:"
            f" transduce train RECIPE --out {folder}"
        )


def _require_own_folder(folder: Path) -> None:
    """Raises TrainingError if there is something else in a folder than a run, or what one begins with.

    What a killed process has left of its files is removed.
    """
    own = {RUN_FILE, STORE, STORE_POINTER, LOCK_FILE, METRICS_FILE}
    strangers = []
    for path in folder.iterdir():
        if any(is_leftover(path, of=name) for name in own):
            if path.is_file():
                path.unlink()
        elif path.name not in own:
            strangers.append(path)
    if strangers and not holds_run(folder):
        raise TrainingError(f"{folder} is not empty and holds no run; name another --out")


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
    config = read_run_config(folder)
    chosen = averaged_checkpoints(folder / CHECKPOINTS, last)
    if not chosen:
        raise CheckpointError(f"{folder / CHECKPOINTS} has no checkpoint; train first")
    prepared = open_prepared(_store_of(folder))
    _check_same_data(folder, prepared)
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


def read_run_config(folder: Path) -> RunConfig:
    """The configuration of a run folder. Raises CheckpointError if it is not one."""
    if not holds_run(folder):
        raise CheckpointError(
            f"{folder} holds no run (there is no {RUN_FILE}); begin one by: transduce train RECIPE --out {folder}"
        )
    values = read_json(folder / RUN_FILE, error=CheckpointError).get("config")
    if not isinstance(values, dict):
        raise CheckpointError(f"{folder / RUN_FILE} should have a table 'config'")
    try:
        return config_from_mapping(RunConfig, values, where=str(folder / RUN_FILE))
    except ConfigError as error:
        raise CheckpointError(str(error)) from error


def resume_config(folder: Path, wanted: RunConfig) -> RunConfig:
    """The configuration to go on with: that of the run, with the length and the watching of ``wanted``.

    Raises ConfigError, naming the field, if ``wanted`` would compute something else.
    """
    begun = read_run_config(folder)
    sizes = {"src_vocab_size": begun.model.src_vocab_size, "tgt_vocab_size": begun.model.tgt_vocab_size}
    wanted = wanted.model_copy(update={"model": wanted.model.model_copy(update=sizes)})
    # A learning rate that falls to nothing at the end depends on where that is.
    is_length_fixed = begun.training.decay != "inverse_sqrt"
    changeable = CHANGEABLE - {"training.max_updates"} if is_length_fixed else CHANGEABLE
    for table, fields in wanted.model_dump().items():
        for name, value in fields.items():
            before = getattr(getattr(begun, table), name)
            is_same = value == before and (not isinstance(value, dict) or list(value) == list(before))  # in order
            if not is_same and f"{table}.{name}" not in changeable:
                raise ConfigError(
                    f"{folder} was begun with {table}.{name} = {before!r}, now it is {value!r}; "
                    "a run goes on with what it began with"
                )
    return wanted


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


def _check_same_data(folder: Path, prepared: Prepared) -> None:
    """Raises DataError if a run was begun on other ids than those in ``prepared``."""
    begun_with = read_json(folder / RUN_FILE, error=CheckpointError).get("data_fingerprint")
    if begun_with != prepared.fingerprint:
        raise DataError(
            f"{prepared.folder} is not what the run in {folder} was begun with: its fingerprint is "
            f"{prepared.fingerprint[:12]}, it was {str(begun_with)[:12]}; give the folder of then, or begin a new run"
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
    if not pointer.exists():
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
