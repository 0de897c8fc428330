"""A run from recipe to model folder: prepare, train, average, evaluate. Sections 5 and 6.1.

A run folder::

    run.json  metrics.jsonl  tensorboard/
    store/    the prepared text; or prepared_at.json, which says where it lies
    checkpoints/update-00001000/
    model/     the averaged model folder
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch

from transduce.config import RunConfig, config_from_mapping
from transduce.data import Batch, BatchStatistics
from transduce.errors import CheckpointError, ConfigError, DataError, TrainingError
from transduce.files import is_leftover, read_json, write_json
from transduce.metrics import TranslationScores
from transduce.model import Transformer
from transduce.tasks.evaluation import evaluate
from transduce.tasks.model_card import model_card
from transduce.tasks.model_folder import write_model_card, write_model_folder
from transduce.tasks.preparation import Prepared, open_prepared, prepare
from transduce.tasks.translation import StoreBatches, TranslationObjective, TranslationValidation
from transduce.tasks.translator import Translator
from transduce.training import (
    Listener,
    MetricsFile,
    StopReason,
    TensorBoardEvents,
    Trainer,
    average_weights,
    checkpoint_folders,
    inverse_sqrt_lr,
    read_state,
)

__all__ = ["RunResult", "average_run", "read_run_config", "resume_config", "train"]

RUN_FILE, METRICS_FILE, STORE_POINTER = "run.json", "metrics.jsonl", "prepared_at.json"
STORE, CHECKPOINTS, TENSORBOARD, MODEL = "store", "checkpoints", "tensorboard", "model"

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
    )
)


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run has come to."""

    folder: Path
    reason: StopReason
    updates: int
    model_folder: Path | None  # None: stopped by request, to be resumed
    scores: TranslationScores | None  # of the averaged model on test, or on dev where there is no test
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
    listeners: Sequence[Listener] = (),
    should_stop: Callable[[], bool] = lambda: False,
    while_training: AbstractContextManager[object] | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> RunResult:
    """Train a translator as ``config`` says, in ``folder``; end with an averaged and evaluated model folder.

    ``store`` is a prepared folder to read instead of preparing the text anew; ``data_folder`` is where corpora are
    looked for first. ``should_stop`` is asked before each update; ``while_training`` is entered for just the time of
    the updates, when it is of use (signal handlers).
    ``tell`` receives lines about each step.
    Raises ConfigError, DataError, CheckpointError or TrainingError; what is on the disk stays usable.
    """
    device = torch.device(device)
    has_run = (folder / RUN_FILE).exists()
    if has_run and not resume:
        raise TrainingError(f"{folder} holds a run already; add --resume to go on with it, or name another --out")
    if not has_run and folder.exists() and not _names_in(folder) <= {STORE, STORE_POINTER}:
        raise TrainingError(f"{folder} is not empty and holds no run; name another --out")
    if has_run:
        config = resume_config(folder, config)
    elif resume:
        tell(f"there is no run in {folder} yet; it begins")
    prepared = _prepared(config, folder, store, data_folder, tell)
    if has_run:
        _check_same_data(folder, prepared)
    if store is not None and not (folder / STORE).exists():
        write_json(folder / STORE_POINTER, {"folder": str(store.resolve())})
    model_config = config.model.with_vocabulary(prepared.tokenizers.src.size, prepared.tokenizers.tgt.size)
    config = config.model_copy(update={"model": model_config})

    torch.manual_seed(config.training.seed)
    model = Transformer(model_config).to(device)
    training = config.training
    batches = StoreBatches(
        prepared.train,
        max_tokens=training.max_tokens_per_batch,
        seed=training.seed,
        device=device,
        weights=config.data.weights,
    )
    trainer = _trainer(config, folder, model, prepared, batches, listeners=listeners, should_stop=should_stop)
    found = checkpoint_folders(folder / CHECKPOINTS)
    if found:
        trainer.resume(found[-1])
        tell(f"resumed from {found[-1].name}")
    tell(_sentence_about_batches(batches.statistics(epoch=0)))
    if prepared.dev is None:
        tell("no dev text: there is no validation, no best checkpoint, and patience has nothing to wait for")
    write_json(
        folder / RUN_FILE,
        {"config": config.model_dump(), "data_fingerprint": prepared.fingerprint, "torch": torch.__version__},
    )
    with _curves(folder, trainer), while_training or nullcontext():
        reason = trainer.run()
    if reason == "asked":
        return RunResult(folder, reason, trainer.state.update, None, None, None, None)
    tell(f"training ended after {trainer.state.update:,} updates ({reason})")
    model_folder, scores, split = average_run(folder, last=config.training.average_last, device=device, tell=tell)
    scored_text = prepared.text_names[split] if split else None
    return RunResult(folder, reason, trainer.state.update, model_folder, scores, split, scored_text)


def average_run(
    folder: Path,
    *,
    last: int,
    out: Path | None = None,
    device: str | torch.device = "cpu",
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[Path, TranslationScores | None, str | None]:
    """Average the newest ``last`` scheduled checkpoints into a model folder, evaluate it and write its card.

    Returns the folder, the scores and the split that they are of. Raises CheckpointError if there is no checkpoint.
    """
    config = read_run_config(folder)
    chosen = [path for path in checkpoint_folders(folder / CHECKPOINTS) if read_state(path).is_scheduled][-last:]
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
        card=model_card(config, prepared, state, n_averaged=len(chosen)),
    )
    tell(f"averaged {len(chosen)} checkpoints into {model_folder}")
    test, dev = prepared.text("test"), prepared.text("dev")
    text, split = (test, "test") if test else (dev, "dev")
    if text is None:
        return model_folder, None, None
    scores = evaluate(Translator.load(model_folder, device=device), *text).scores
    write_model_card(
        model_folder, model_card(config, prepared, state, n_averaged=len(chosen), scores=scores, split=split)
    )
    return model_folder, scores, split


def read_run_config(folder: Path) -> RunConfig:
    """The configuration of a run folder. Raises CheckpointError if it is not one."""
    if not (folder / RUN_FILE).exists():
        raise CheckpointError(f"{folder} holds no run (there is no {RUN_FILE}); name a recipe to begin one")
    values = read_json(folder / RUN_FILE, error=CheckpointError).get("config")
    if not isinstance(values, dict):
        raise CheckpointError(f"{folder / RUN_FILE} should have a table 'config'")
    return config_from_mapping(RunConfig, values, where=str(folder / RUN_FILE))


def resume_config(folder: Path, wanted: RunConfig) -> RunConfig:
    """The configuration to go on with: that of the run, with the length and the watching of ``wanted``.

    Raises ConfigError, naming the field, if ``wanted`` would compute something else.
    """
    begun = read_run_config(folder)
    sizes = {"src_vocab_size": begun.model.src_vocab_size, "tgt_vocab_size": begun.model.tgt_vocab_size}
    wanted = wanted.model_copy(update={"model": wanted.model.model_copy(update=sizes)})
    for table, fields in wanted.model_dump().items():
        for name, value in fields.items():
            before = getattr(getattr(begun, table), name)
            is_same = value == before and (not isinstance(value, dict) or list(value) == list(before))  # in order
            if not is_same and f"{table}.{name}" not in CHANGEABLE:
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
    return Path(str(read_json(pointer)["folder"])) if pointer.exists() else folder / STORE


def _names_in(folder: Path) -> set[str]:
    """What is in a folder, apart from what a killed process may have left of a store."""
    return {path.name for path in folder.iterdir() if not is_leftover(path, of=STORE)}


@contextmanager
def _curves(folder: Path, trainer: Trainer[Batch]) -> Iterator[None]:
    """Let the run write its records, from where it stands: what an earlier sitting wrote past that is forgotten."""
    metrics = MetricsFile(folder / METRICS_FILE)
    metrics.rewind(trainer.state.update)
    trainer.listeners.append(metrics)
    if not TensorBoardEvents.is_available():
        yield
        return
    events = TensorBoardEvents(folder / TENSORBOARD, updates_done=trainer.state.update)
    trainer.listeners.append(events)
    try:
        yield
    finally:
        events.close()


def _trainer(
    config: RunConfig,
    folder: Path,
    model: Transformer,
    prepared: Prepared,
    batches: StoreBatches,
    *,
    listeners: Sequence[Listener],
    should_stop: Callable[[], bool],
) -> Trainer[Batch]:
    training = config.training
    text = prepared.text("dev")
    validate = None
    if prepared.dev is not None and text is not None:
        validate = TranslationValidation(model, prepared.tokenizers, prepared.dev, text, config)
    return Trainer(
        model=model,
        objective=TranslationObjective(model, training),
        batches=batches,
        learning_rate=lambda step: (
            training.lr_factor * inverse_sqrt_lr(step, d_model=config.model.d_model, warmup_steps=training.warmup_steps)
        ),
        config=training,
        checkpoints=folder / CHECKPOINTS,
        validate=validate,
        listeners=listeners,
        should_stop=should_stop,
    )
