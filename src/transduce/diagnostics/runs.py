"""Diagnostics of run folders: configuration, text, checkpoints, metrics, lock and disk space."""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from transduce.config import RunConfig
from transduce.corpora.cleaning import Tally
from transduce.diagnostics.corpora import describe_run
from transduce.diagnostics.folders import examine_checkpoint, examine_leftovers, examine_prepared
from transduce.diagnostics.models import examine_model
from transduce.errors import CheckpointError, TransduceError, quoted
from transduce.files import decoded_lines, is_running, open_regular, read_json
from transduce.findings.finding import Finding, counted, good, guard, note, on_lines, problem
from transduce.model import cost_of
from transduce.runs import read_run_config
from transduce.runs.folder import METRICS_FILE, MODEL, STORE, STORE_POINTER, require_own_entries
from transduce.runs.lock import LOCK_FILE, lock_holder
from transduce.runs.run_file import CHECKPOINTS, RUN_FILE, RunSettings, changes_since, read_run_file
from transduce.tasks import open_prepared
from transduce.training import SkipRecord, checkpoint_folders

__all__ = ["examine_checkpoints", "examine_metrics", "examine_run"]

BYTES_PER_PARAMETER = 12  # in a checkpoint: a weight and two moments in fp32
FINITE = ("loss_nats", "nll_nats", "gradient_norm")  # fields that must be finite where present


def examine_run(folder: Path) -> Iterator[Finding]:
    """Examine everything in a run folder; damage to one part does not hide the others."""
    config: RunConfig | None = None
    with suppress(TransduceError, OSError):  # reported by _examine_config
        config = read_run_config(folder)
    yield from guard(folder / RUN_FILE, _examine_config(folder))
    yield from guard(folder, _examine_entries(folder))
    yield from guard(folder / LOCK_FILE, _examine_lock(folder))
    yield from guard(folder / STORE, _examine_text(folder, config))
    checkpoints = folder / CHECKPOINTS
    yield from guard(checkpoints, examine_checkpoints(checkpoints))
    if config is not None:
        yield from guard(folder, _examine_space(folder, config))
    yield from guard(folder / METRICS_FILE, examine_metrics(folder / METRICS_FILE))
    yield from guard(folder, examine_leftovers(folder, checkpoints))
    if (folder / MODEL).exists():
        yield from guard(folder / MODEL, examine_model(folder / MODEL))
    else:
        yield note(folder / MODEL, f"no model folder yet; create it with: transduce average {folder}")


def _examine_entries(folder: Path) -> Iterator[Finding]:
    """Check that the entries of a run folder are regular files and folders."""
    require_own_entries(folder)
    yield from ()


def _examine_config(folder: Path) -> Iterator[Finding]:
    settings = read_run_file(folder)
    yield good(folder, f"a run: {describe_run(settings.config)}")
    if not os.path.lexists(folder / RUN_FILE):
        yield problem(
            folder / RUN_FILE,
            f"is missing; checkpoints have a copy, and this writes it again: transduce train --resume --out {folder}",
        )
    if settings.torch != torch.__version__:
        yield note(
            folder / RUN_FILE,
            f"started with torch {settings.torch}, this is {torch.__version__}: results of a resumed run may differ in"
            " the last bits",
        )
    yield from _examine_copies(folder, settings)


def _examine_copies(folder: Path, settings: RunSettings) -> Iterator[Finding]:
    """Compare ``run.json`` with the copies in the checkpoints."""
    unknown, changed = list[Path](), dict[str, str]()
    for path in checkpoint_folders(folder / CHECKPOINTS):
        with suppress(CheckpointError):  # reported by examine_checkpoints
            changes = changes_since(path, settings)
            if changes is None:
                unknown.append(path)
            for name, old, new in changes or ():
                changed[name] = f"has {name} = {quoted(new)}, but {path.name} was written with {quoted(old)}"
    for message in changed.values():
        yield problem(folder / RUN_FILE, f"{message}; undo the change, or remove it: train --resume writes it again")
    if unknown:
        yield note(
            folder / RUN_FILE,
            f"{counted(len(unknown), 'checkpoint')} of an earlier version without a copy of it: changes since cannot be"
            " detected",
        )


def _examine_lock(folder: Path) -> Iterator[Finding]:
    """Report the process that writes to the run, or a lock that it left."""
    path = folder / LOCK_FILE
    if not os.path.lexists(path):
        return
    holder = lock_holder(folder)
    if holder is None:
        yield note(path, "names no process; a killed process has left it, and it does not lock the run")
    elif holder.host != socket.gethostname():
        command = "transduce train --resume --break-lock"
        yield note(path, f"{holder}, writes to this run; if it has ended, resume with: {command}")
    elif is_running(holder.process):
        yield note(path, f"{holder}, writes to this run: files may change during the examination")
    else:
        yield note(path, f"{holder}, wrote to this run and has ended; the lock is not held")


def _examine_text(folder: Path, config: RunConfig | None) -> Iterator[Finding]:
    """Examine the prepared text, and check that the run was started with it."""
    store, pointer = folder / STORE, folder / STORE_POINTER
    if os.path.lexists(pointer):
        target = read_json(pointer).get("folder")
        if not isinstance(target, str):
            yield problem(pointer, 'should hold {"folder": "..."}; resume with --store and the prepared folder')
            return
        store = Path(target)
    if not store.exists():
        yield problem(store, "the prepared text of this run is missing; restore it, or name its folder with --store")
        return
    findings = list(examine_prepared(store))
    yield from findings
    if config is None or any(finding.status == "problem" and finding.subject == str(store) for finding in findings):
        return
    fingerprint = open_prepared(store, expected=config.data).fingerprint
    if read_run_file(folder).data_fingerprint != fingerprint:
        yield problem(store, "is not the text that this run was started with: its ids differ; restore the old folder")


def examine_checkpoints(folder: Path) -> Iterator[Finding]:
    """Examine each checkpoint, and report which one a run would resume from."""
    paths = checkpoint_folders(folder) if folder.is_dir() else []
    if not paths:
        yield note(folder, "no checkpoint yet; a run starts from its first update")
        return
    complete: list[Path] = []
    for path in paths:
        findings = list(guard(path, examine_checkpoint(path)))
        yield from findings
        if not any(finding.status == "problem" for finding in findings):
            complete.append(path)
    newest = paths[-1].name
    if complete and complete[-1] == paths[-1]:
        yield good(folder, f"a run resumes from {newest}")
    elif complete:
        yield problem(
            folder,
            f"the newest checkpoint, {newest}, cannot be used; a run resumes from {complete[-1].name}, the newest"
            " usable one, and sets newer ones aside",
        )
    else:
        yield problem(folder, "no checkpoint can be used; restore one from a copy, or start the run again")


def _examine_space(folder: Path, config: RunConfig) -> Iterator[Finding]:
    """Check the space for future checkpoints: the newest, those around the best, and one before another is removed."""
    paths = checkpoint_folders(folder / CHECKPOINTS) if (folder / CHECKPOINTS).is_dir() else []
    sizes = [sum(file.stat().st_size for file in path.iterdir()) for path in paths]
    size = max(sizes, default=BYTES_PER_PARAMETER * cost_of(config.model).parameters)
    training = config.training
    needed = size * max(1, training.keep_checkpoints + training.average_last + 1 - len(paths))
    free = shutil.disk_usage(folder).free
    space = (
        f"{free / 1e9:,.1f} GB free; a checkpoint has {size / 1e6:,.1f} MB, and {training.keep_checkpoints} are"
        f" kept beside up to {training.average_last} around the best"
    )
    if free < needed:
        yield problem(
            folder, f"{space}: {needed / 1e9:,.1f} GB are needed; free some, or lower training.keep_checkpoints"
        )
    else:
        yield good(folder, space)


def examine_metrics(path: Path) -> Iterator[Finding]:
    """Examine the records of a run, line by line."""
    if not os.path.lexists(path):
        yield note(path, "no records yet")
        return
    n_lines, last_update, is_torn = 0, 0, False
    malformed, nonfinite, skipped, backwards = Tally(), Tally(), Tally(), Tally()
    with open_regular(path) as stream:
        for n_lines, line in enumerate(decoded_lines(stream, str(path), errors="surrogateescape"), start=1):
            if is_torn:  # the previous line, which was not the last one
                malformed.add(n_lines - 1)
            record = _record(line)
            is_torn = record is None
            if record is None:
                continue
            if any(name in record and not _is_number(record[name]) for name in FINITE):
                nonfinite.add(n_lines)
            if record.get("kind") == SkipRecord.kind:
                skipped.add(n_lines)
            if record["update"] < last_update:
                backwards.add(n_lines)
            last_update = max(last_update, record["update"])
    if is_torn:
        yield note(path, f"the last line, {n_lines:,}, is incomplete: the process was killed; a resumed run drops it")
    lower = "lower training.lr_factor or set training.clip_norm"
    advice = "remove them, or the run cannot be resumed"
    yield from on_lines("problem", path, malformed, "line", "without a record", advice)
    what, advice = "with a non-finite loss or gradient", f"go back to an older checkpoint, and {lower}"
    yield from on_lines("problem", path, nonfinite, "record", what, advice)
    what, advice = "skipped for a non-finite loss or gradient", f"if there are many, {lower}"
    yield from on_lines("note", path, skipped, "update", what, advice)
    if backwards.count:
        yield note(path, f"{counted(backwards.count, 'record')} of earlier updates than the lines above ({backwards})")
    n_records = n_lines - malformed.count - is_torn
    yield good(path, f"{counted(n_records, 'record')}, the last of update {last_update:,}")


def _record(line: str) -> dict[str, Any] | None:
    """Parse a record of an update; None if the line is not one."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) and type(values.get("update")) is int else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
