"""What a run was begun with: ``run.json`` in the run folder, and a copy in each checkpoint.

The copies are under the manifests of their checkpoints. So a run is gone on with, averaged and examined only if
``run.json`` says what its checkpoints were made with; and where it is gone, the newest of them gives it back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.config import RunConfig, config_from_mapping
from transduce.config.migrations import config_of_format_1
from transduce.errors import CheckpointError, ConfigError, TrainingError, quoted
from transduce.files import migrated, read_json
from transduce.training import checkpoint_folders, read_run_settings, read_state

__all__ = [
    "CHECKPOINTS", "RUN_FILE", "RunSettings", "changes_since", "holds_run", "read_run_config", "read_run_file",
    "require_made_by", "require_run", "resume_config",
]  # fmt: skip

RUN_FILE, CHECKPOINTS = "run.json", "checkpoints"
MIGRATIONS = (config_of_format_1,)
Change = tuple[str, Any, Any]  # the name of a field, its value before, its value now

# What may be different when a run goes on: how long it is and how it is watched and kept, not what it computes.
CHANGEABLE = frozenset(
    f"training.{name}"
    for name in """
        max_updates max_minutes patience log_every_updates validate_every_updates validation_bleu validation_sentences
        checkpoint_every_updates checkpoint_every_minutes keep_checkpoints average_last n_skippable
    """.split()
)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of a run, the fingerprint of its text, and the version of torch that began it."""

    config: RunConfig
    data_fingerprint: str
    torch: str

    def as_json(self) -> dict[str, Any]:
        """As it is written down, with the number of fields: a line that is gone is not taken for a default."""
        config = json.loads(self.config.model_dump_json())
        return {
            "format": len(MIGRATIONS),
            "config": config,
            "n_fields": _n_fields(config),
            "data_fingerprint": self.data_fingerprint,
            "torch": self.torch,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, where: Path) -> RunSettings:
        """What ``as_json`` gave. Fields that were not yet there when it was written have their defaults.

        Raises CheckpointError, which begins with ``where``, if it cannot be used.
        """
        now = migrated(values, MIGRATIONS, where=where, error=CheckpointError)
        tables, fingerprint = values.get("config"), now.get("data_fingerprint")
        if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
            raise CheckpointError(f"{where} should have a table 'config' of tables")
        if not isinstance(fingerprint, str):
            raise CheckpointError(f"{where} should have data_fingerprint, of the text; got {quoted(fingerprint)}")
        config = config_from_mapping(RunConfig, now["config"], where=where, error=CheckpointError)
        n_written = values.get("n_fields", _n_fields(tables))  # earlier versions did not count them
        if n_written != _n_fields(tables):
            known = ((table, name) for table, fields in config.model_dump().items() for name in fields)
            missing = [f"{table}.{name}" for table, name in known if name not in now["config"].get(table, {})]
            lost = f" ({', '.join(missing[:5])})" if missing else ""
            raise CheckpointError(
                f"{where} was written with {quoted(n_written)} fields and has {_n_fields(tables)}: some are gone{lost}"
            )
        return cls(config, fingerprint, str(now.get("torch")))


def _n_fields(tables: Mapping[str, Mapping[str, Any]]) -> int:
    return sum(map(len, tables.values()))


def differences(before: RunConfig, now: RunConfig) -> Iterator[Change]:
    """The fields that must be the same while a run lasts, and are not."""
    # A learning rate that falls to nothing at the end depends on where that is.
    is_length_fixed = before.training.decay != "inverse_sqrt"
    changeable = CHANGEABLE - {"training.max_updates"} if is_length_fixed else CHANGEABLE
    values = now.model_dump()
    for table, fields in before.model_dump().items():
        for name, old in fields.items():
            new = values[table].get(name)  # none if the table is of another kind now, which is told first
            is_same = new == old and (not isinstance(old, dict) or list(new) == list(old))  # in order
            if not is_same and f"{table}.{name}" not in changeable:
                yield f"{table}.{name}", old, new


def holds_run(folder: Path) -> bool:
    """Whether a run has begun in ``folder``: what one that was killed before has left is none yet."""
    return os.path.lexists(folder / RUN_FILE) or _newest_copy(folder) is not None


def require_run(folder: Path) -> None:
    """Raises TrainingError if there is nothing to resume in ``folder``."""
    if holds_run(folder):
        return
    if checkpoint_folders(folder / CHECKPOINTS):
        raise TrainingError(
            f"{folder} has checkpoints, but {RUN_FILE} is gone, and none of them that is sound says what the run was "
            f"begun with; bring {RUN_FILE} back from a copy"
        )
    raise TrainingError(
        f"{folder} holds no run to go on with (there is no {RUN_FILE}); begin it without --resume:"
        f" transduce train RECIPE --out {folder}"
    )


def read_run_file(folder: Path) -> RunSettings:
    """What the run in ``folder`` was begun with, from its newest checkpoint where ``run.json`` is gone.

    Raises CheckpointError if it is no run folder, or ``run.json`` cannot be used.
    """
    path = folder / RUN_FILE
    if os.path.lexists(path):
        try:
            return RunSettings.from_json(read_json(path, error=CheckpointError), where=path)
        except CheckpointError as error:
            raise CheckpointError(f"{error}{_way_out(folder)}") from error
    copy = _newest_copy(folder)
    if copy is None:
        raise CheckpointError(
            f"{folder} holds no run (there is no {RUN_FILE}); begin one by: transduce train RECIPE --out {folder}"
        )
    return copy[1]


def read_run_config(folder: Path) -> RunConfig:
    """The configuration of a run folder. Raises CheckpointError if it is not one."""
    return read_run_file(folder).config


def changes_since(checkpoint: Path, begun: RunSettings) -> list[Change] | None:
    """What ``begun`` has otherwise than a checkpoint was made with; None if an earlier version has written that.

    Raises CheckpointError if the checkpoint cannot be read.
    """
    values = read_run_settings(checkpoint)
    if values is None:
        return None
    made = RunSettings.from_json(values, where=checkpoint / "state.json")
    changes = list(differences(made.config, begun.config))
    if made.data_fingerprint != begun.data_fingerprint:
        changes.append(("data_fingerprint", made.data_fingerprint[:12], begun.data_fingerprint[:12]))
    return changes


def require_made_by(checkpoint: Path, begun: RunSettings, folder: Path) -> bool:
    """Whether a checkpoint says what it was made with; it cannot if an earlier version has written it.

    Raises CheckpointError, naming the field, if it says another thing than the ``run.json`` of ``folder``.
    """
    changes = changes_since(checkpoint, begun)
    for name, was, now in changes or ():
        raise CheckpointError(
            f"{folder / RUN_FILE} says {name} = {quoted(now)}, but {checkpoint.name} was made with {quoted(was)}"
            f"{_way_out(folder)}"
        )
    return changes is not None


def resume_config(folder: Path, wanted: RunConfig) -> RunConfig:
    """The configuration to go on with: that of the run, with the length and the watching of ``wanted``.

    Raises ConfigError, naming the field, if ``wanted`` would compute something else.
    """
    begun = read_run_config(folder)
    sizes = {"src_vocab_size": begun.model.src_vocab_size, "tgt_vocab_size": begun.model.tgt_vocab_size}
    wanted = wanted.model_copy(update={"model": wanted.model.model_copy(update=sizes)})
    for name, before, now in differences(begun, wanted):
        raise ConfigError(
            f"{folder} was begun with {name} = {before!r}, now it is {now!r}; a run goes on with what it began with"
        )
    return wanted


def _newest_copy(folder: Path) -> tuple[Path, RunSettings] | None:
    """The newest checkpoint that says what its run was begun with, and what."""
    for path in reversed(checkpoint_folders(folder / CHECKPOINTS)):
        try:
            read_state(path)
            values = read_run_settings(path)
            if values is not None:
                return path, RunSettings.from_json(values, where=path / "state.json")
        except CheckpointError:
            continue
    return None


def _way_out(folder: Path) -> str:
    """A clause about a ``run.json`` that cannot be used."""
    copy = _newest_copy(folder)
    if copy is None:
        return "; bring it back from a copy"
    return f"; put it back as it was, or remove it: --resume writes it again as {copy[0].name} has it"
