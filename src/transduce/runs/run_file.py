"""Run settings: ``run.json`` in the run folder, with a copy in each checkpoint.

Resuming and averaging require that ``run.json`` agrees with the copies, which the checkpoints' manifests protect; the
doctor checks it. If ``run.json`` is missing, the newest copy replaces it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.config import RunConfig, config_from_mapping, without_unread
from transduce.config.migrations import config_of_format_1, config_of_format_2, config_of_format_3
from transduce.errors import CheckpointError, ConfigError, TrainingError, quoted
from transduce.files import migrated, read_json
from transduce.inference.ancestry import Ancestor, ancestry_as_json, ancestry_from_json
from transduce.runs.lock import LOCK_FILE
from transduce.tasks.registry import task_of
from transduce.training import checkpoint_folders, read_run_settings, read_state

__all__ = [
    "CHECKPOINTS", "FIRST_ENTRIES", "MODEL", "RUN_FILE", "STORE", "STORE_POINTER", "RunSettings", "changes_since",
    "holds_run", "read_run_config", "read_run_file", "require_made_by", "require_run", "resume_config", "with_start_of",
]  # fmt: skip

RUN_FILE, CHECKPOINTS, MODEL = "run.json", "checkpoints", "model"
STORE, STORE_POINTER = "store", "prepared_at.json"
FIRST_ENTRIES = {STORE, STORE_POINTER, LOCK_FILE}  # of the folder of a run that has not begun
MAX_NAMED = 50  # missing fields in a message
MIGRATIONS = (config_of_format_1, config_of_format_2, config_of_format_3)
Change = tuple[str, Any, Any]  # (field name, old value, new value)

# Fields that may change on resume: run length, validation, logging and checkpoints, nothing that changes the updates.
CHANGEABLE = frozenset(
    f"training.{name}"
    for name in """
        max_updates max_minutes best_by patience log_every_updates validate_every_updates validation_bleu
        validation_sentences checkpoint_every_updates checkpoint_every_minutes keep_checkpoints average_last averaging
        max_skipped_updates
    """.split()
)

LENGTH = frozenset({"training.max_updates", "training.max_minutes"})
FOLDERS = ("started_in", "data_folder")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of a run, the fingerprint of its text, and the version of torch that started it."""

    config: RunConfig
    data_fingerprint: str
    torch: str
    ancestry: tuple[Ancestor, ...] = ()  # the models whose weights it started from, the oldest first
    started_in: str | None = None  # the folder that relative paths start from; None in runs of earlier versions
    data_folder: str | None = None  # that of --data, in which the corpora were; None if it was not given

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values, with the number of fields, so that a deleted field is not taken for a default."""
        config = json.loads(self.config.model_dump_json())
        return {
            "format": len(MIGRATIONS),
            "config": config,
            "n_fields": _n_fields(config),
            "data_fingerprint": self.data_fingerprint,
            "torch": self.torch,
            **({"ancestry": ancestry_as_json(self.ancestry)} if self.ancestry else {}),
            **{name: value for name in FOLDERS if (value := getattr(self, name)) is not None},
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, where: Path) -> RunSettings:
        """Read the values of ``as_json``. Fields added in later versions get their defaults.

        Raises CheckpointError, whose message begins with ``where``, if they are not valid.
        """
        current = migrated(values, MIGRATIONS, where=where, error=CheckpointError)
        tables, fingerprint = values.get("config"), current.get("data_fingerprint")
        if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
            raise CheckpointError(f"{where} should have a table 'config' of tables")
        if not isinstance(fingerprint, str):
            raise CheckpointError(f"{where}: data_fingerprint should be a string, got {quoted(fingerprint)}")
        config = config_from_mapping(RunConfig, without_unread(current["config"]), where=where, error=CheckpointError)
        n_written = values.get("n_fields", _n_fields(tables))  # earlier versions did not write it
        if n_written != _n_fields(tables):
            known = ((table, name) for table, fields in config.model_dump().items() for name in fields)
            missing = [f"{table}.{name}" for table, name in known if name not in current["config"].get(table, {})]
            names = f" (among {', '.join(missing[:MAX_NAMED])})" if missing else ""  # others came in later versions
            raise CheckpointError(
                f"{where} was written with {quoted(n_written)} fields and has {_n_fields(tables)}: some are "
                f"missing{names}"
            )
        folders = {name: current.get(name) for name in FOLDERS}
        for name, value in folders.items():
            if not isinstance(value, str | None):
                raise CheckpointError(f"{where}: {name} should be a folder, got {quoted(value)}")
        ancestry = ancestry_from_json(current, where=where)
        return cls(config, fingerprint, str(current.get("torch")), ancestry, **folders)


def _n_fields(tables: Mapping[str, Mapping[str, Any]]) -> int:
    return sum(map(len, tables.values()))


def differences(before: RunConfig, now: RunConfig) -> Iterator[Change]:
    """Yield the fields that differ but must not change during a run."""
    changeable = CHANGEABLE - LENGTH if _is_length_fixed(before) else CHANGEABLE
    n_extensions, extended_at = len(before.training.extended_at), now.training.extended_at
    if len(extended_at) > n_extensions and extended_at[:n_extensions] == before.training.extended_at:
        changeable |= {*LENGTH, "training.extended_at"}
    values = now.model_dump()
    for table, fields in before.model_dump().items():
        for name, old in fields.items():
            new = values[table].get(name)  # None if the table has another kind, which is a change by itself
            is_same = new == old and (not isinstance(old, dict) or list(new) == list(old))  # same order, too
            if not is_same and f"{table}.{name}" not in changeable:
                yield f"{table}.{name}", old, new


def _is_length_fixed(config: RunConfig) -> bool:
    """Whether the learning rate depends on the length of the run, since it decays to 0."""
    return config.training.decay != "inverse_sqrt"


def holds_run(folder: Path) -> bool:
    """Whether ``folder`` holds a started run; leftovers of one killed during preparation do not count."""
    return os.path.lexists(folder / RUN_FILE) or _newest_copy(folder) is not None


def require_run(folder: Path) -> None:
    """Raise TrainingError if there is no run to resume in ``folder``."""
    if holds_run(folder):
        return
    if checkpoint_folders(folder / CHECKPOINTS):
        raise TrainingError(
            f"{folder} has checkpoints, but {RUN_FILE} is missing, and no intact checkpoint has a copy of it; restore "
            f"{RUN_FILE} from a backup"
        )
    raise TrainingError(_without_run(folder))


def _without_run(folder: Path) -> str:
    """Say that a folder holds no run, and which one is meant, or how to start one there."""
    missing = f"{folder} holds no run (there is no {RUN_FILE})"
    around = next((each for each in folder.resolve().parents if (each / RUN_FILE).is_file()), None)
    if around is not None:
        return f"{missing}; it is a part of the run {around}: name that"
    if os.path.lexists(folder) and not (folder.is_dir() and all(map(_is_of_preparation, folder.iterdir()))):
        return f"{missing}; name the folder of a run, as in runs/my"
    return f"{missing}; start one: transduce train RECIPE --out {folder}"


def _is_of_preparation(path: Path) -> bool:
    """Whether a path can be in the folder of a run that was killed before it began."""
    return path.name in FIRST_ENTRIES or path.name.startswith(".")


def read_run_file(folder: Path) -> RunSettings:
    """Return the settings of the run in ``folder``, from its newest checkpoint if ``run.json`` is missing.

    Raises CheckpointError if it is not a run folder, or if ``run.json`` is invalid.
    """
    path = folder / RUN_FILE
    if os.path.lexists(path):
        try:
            return RunSettings.from_json(read_json(path, error=CheckpointError), where=path)
        except CheckpointError as error:
            raise CheckpointError(f"{error}{_recovery_hint(folder)}") from error
    copy = _newest_copy(folder)
    if copy is None:
        raise CheckpointError(_without_run(folder))
    return copy[1]


def read_run_config(folder: Path) -> RunConfig:
    """Return the configuration of a run folder. Raises CheckpointError if it is not one."""
    return read_run_file(folder).config


def changes_since(checkpoint: Path, settings: RunSettings) -> list[Change] | None:
    """Return how ``settings`` differ from the copy in a checkpoint; None if an early version without copies wrote it.

    Raises CheckpointError if the checkpoint cannot be read.
    """
    values = read_run_settings(checkpoint)
    if values is None:
        return None
    copy = RunSettings.from_json(values, where=checkpoint / "state.json")
    changes = list(differences(copy.config, settings.config))
    if copy.data_fingerprint != settings.data_fingerprint:
        changes.append(("data_fingerprint", copy.data_fingerprint[:12], settings.data_fingerprint[:12]))
    return changes


def require_made_by(checkpoint: Path, settings: RunSettings, folder: Path) -> bool:
    """Check that a checkpoint was made with ``settings``; False if an early version without copies wrote it.

    Raises CheckpointError, naming the field, if the copy differs from ``run.json`` of ``folder``.
    """
    changes = changes_since(checkpoint, settings)
    for name, old, new in changes or ():
        raise CheckpointError(
            f"{folder / RUN_FILE} has {name} = {quoted(new)}, but {checkpoint.name} was made with {quoted(old)}"
            f"{_recovery_hint(folder)}"
        )
    return changes is not None


def resume_config(folder: Path, requested: RunConfig, log: Callable[[str], None] = lambda line: None) -> RunConfig:
    """Return ``requested`` with the model of the run in ``folder``, the one that it started from, and its extension.

    ``log`` receives a line if there is an extension that ``requested`` does not have.
    Raises ConfigError, naming the field, if one that must not change on resume differs.
    """
    original = read_run_config(folder)
    model = task_of(requested).model_config(requested.model, *original.model.vocab_sizes)
    requested = requested.model_copy(update={"model": model})
    requested = _with_length_of(original, with_start_of(original, requested), log)
    for name, old, new in differences(original, requested):
        longer = "; transduce train --more MINUTES extends a finished run" if name in LENGTH else ""
        first = "" if (folder / MODEL).exists() else f"transduce average {folder}, then "
        raise ConfigError(
            f"{folder} was started with {name} = {old!r}, got {new!r}; this cannot change on resume; to go on from its"
            f" weights with other settings, start a new run: {first}transduce train RECIPE --from {folder / MODEL}"
            f" --out ANOTHER{longer}"
        )
    return requested


def with_start_of(original: RunConfig, requested: RunConfig) -> RunConfig:
    """Return ``requested`` with the model that ``original`` starts from, unless it names one itself."""
    if requested.training.init_from is not None or requested.data.tokenizer_from is not None:
        return requested
    training = requested.training.model_copy(update={"init_from": original.training.init_from})
    data = requested.data.model_copy(update={"tokenizer_from": original.data.tokenizer_from})
    return requested.model_copy(update={"training": training, "data": data})


def _with_length_of(original: RunConfig, requested: RunConfig, log: Callable[[str], None]) -> RunConfig:
    """Return ``requested`` with what recipes do not know: the run's extension, or, of a fixed length, its minutes."""
    before, now = original.training, requested.training
    kept: dict[str, object] = {}
    if len(now.extended_at) < len(before.extended_at):
        log(f"the run was extended: it keeps its end at {before.max_updates:,} updates")
        names = ("extended_at", "max_updates", "max_minutes", "patience")
        kept = {name: getattr(before, name) for name in names} | {"averaging": now.averaging or before.averaging}
    elif now.max_minutes is None and _is_length_fixed(original):
        kept = {"max_minutes": before.max_minutes}
    return requested.model_copy(update={"training": now.model_copy(update=kept)})


def _newest_copy(folder: Path) -> tuple[Path, RunSettings] | None:
    """Return the newest checkpoint with a copy of the run settings, and the copy."""
    for path in reversed(checkpoint_folders(folder / CHECKPOINTS)):
        try:
            read_state(path)
            values = read_run_settings(path)
            if values is not None:
                return path, RunSettings.from_json(values, where=path / "state.json")
        except CheckpointError:
            continue
    return None


def _recovery_hint(folder: Path) -> str:
    """Suggest how to recover from an invalid ``run.json``, as a clause of a message."""
    copy = _newest_copy(folder)
    if copy is None:
        return "; restore it from a backup"
    return f"; restore it, or remove it: --resume then writes it again from {copy[0].name}"
