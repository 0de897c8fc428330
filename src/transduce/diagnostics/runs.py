"""A run folder: its recipe, its text, its checkpoints, what it recorded, and whether there is room to go on."""

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
from transduce.diagnostics.finding import Finding, counted, good, guard, note, on_lines, problem
from transduce.diagnostics.folders import examine_checkpoint, examine_leftovers, examine_model, examine_prepared
from transduce.errors import CheckpointError, TransduceError, quoted
from transduce.files import decoded_lines, is_running, open_regular, read_json
from transduce.model import cost_of
from transduce.tasks import open_prepared, read_run_config
from transduce.tasks.run_file import CHECKPOINTS, RUN_FILE, RunSettings, changes_since, read_run_file
from transduce.tasks.run_folder import METRICS_FILE, MODEL, STORE, STORE_POINTER, require_own_entries
from transduce.tasks.run_lock import LOCK_FILE, lock_holder
from transduce.training import SkipRecord, checkpoint_folders

__all__ = ["examine_checkpoints", "examine_metrics", "examine_run"]

BYTES_A_PARAMETER = 12  # of a checkpoint: a weight and two moments, fp32
FINITE = ("loss_nats", "nll_nats", "gradient_norm")  # what must be a number in every record that has it


def examine_run(folder: Path) -> Iterator[Finding]:
    """Everything in a run folder; what is broken hides nothing else."""
    config: RunConfig | None = None
    with suppress(TransduceError, OSError):  # what is wrong with it is told of it
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
        yield note(folder / MODEL, f"there is no model folder yet; one is made by: transduce average {folder}")


def _examine_entries(folder: Path) -> Iterator[Finding]:
    """Whether what should be files and folders are."""
    require_own_entries(folder)
    yield from ()


def _examine_config(folder: Path) -> Iterator[Finding]:
    begun = read_run_file(folder)
    yield good(folder, f"a run: {describe_run(begun.config)}")
    if not os.path.lexists(folder / RUN_FILE):
        yield problem(
            folder / RUN_FILE,
            f"is gone; checkpoints have a copy, and it is written again by: transduce train --resume --out {folder}",
        )
    if begun.torch != torch.__version__:
        yield note(
            folder / RUN_FILE,
            f"begun with torch {begun.torch}, here is {torch.__version__}: a resumed run may differ in the last bits",
        )
    yield from _examine_copies(folder, begun)


def _examine_copies(folder: Path, begun: RunSettings) -> Iterator[Finding]:
    """Whether the checkpoints were made with what ``run.json`` says."""
    unknown, changed = list[Path](), dict[str, str]()
    for path in checkpoint_folders(folder / CHECKPOINTS):
        with suppress(CheckpointError):  # what is wrong with it is told of it
            changes = changes_since(path, begun)
            if changes is None:
                unknown.append(path)
            for name, was, now in changes or ():
                changed[name] = f"says {name} = {quoted(now)}, but {path.name} was made with {quoted(was)}"
    for message in changed.values():
        yield problem(folder / RUN_FILE, f"{message}; put it back, or remove it: train --resume writes it again")
    if unknown:
        yield note(
            folder / RUN_FILE,
            f"{counted(len(unknown), 'checkpoint')} of an earlier version, which kept no copy of it: whether it was"
            " changed since cannot be seen",
        )


def _examine_lock(folder: Path) -> Iterator[Finding]:
    """Who writes to the run now, or did when the machine went down."""
    path = folder / LOCK_FILE
    if not os.path.lexists(path):
        return
    holder = lock_holder(folder)
    if holder is None:
        yield note(
            path, "does not say who writes to this run; a process that was killed has left it, and it holds nobody"
        )
    elif holder.host != socket.gethostname():
        how = "transduce train --resume --break-lock"
        yield note(path, f"{holder}, writes to this run; if it is gone, go on with: {how}")
    elif is_running(holder.process):
        yield note(path, f"{holder}, writes to this run: what is here may change while it is examined")
    else:
        yield note(path, f"{holder}, wrote to this run and is gone; this holds nobody")


def _examine_text(folder: Path, config: RunConfig | None) -> Iterator[Finding]:
    """The prepared text, in the run or where it is pointed to, and whether the run was begun with it."""
    store, pointer = folder / STORE, folder / STORE_POINTER
    if os.path.lexists(pointer):
        place = read_json(pointer).get("folder")
        if not isinstance(place, str):
            yield problem(pointer, 'should hold {"folder": "..."}; resume with --store and the prepared folder')
            return
        store = Path(place)
    if not store.exists():
        yield problem(
            store, "the prepared text of this run is not there; bring it back, or say with --store where it is"
        )
        return
    findings = list(examine_prepared(store))
    yield from findings
    if config is None or any(finding.status == "problem" and finding.subject == str(store) for finding in findings):
        return
    fingerprint = open_prepared(store, expected=config.data).fingerprint
    if read_run_file(folder).data_fingerprint != fingerprint:
        yield problem(store, "is not the text that this run was begun with: other ids; bring the folder of then back")


def examine_checkpoints(folder: Path) -> Iterator[Finding]:
    """Each checkpoint of a folder, and which one a run would go on from."""
    paths = checkpoint_folders(folder) if folder.is_dir() else []
    if not paths:
        yield note(folder, "there is no checkpoint yet; a run begins from its first update")
        return
    complete: list[Path] = []
    for path in paths:
        findings = list(guard(path, examine_checkpoint(path)))
        yield from findings
        if not any(finding.status == "problem" for finding in findings):
            complete.append(path)
    newest = paths[-1].name
    if complete and complete[-1] == paths[-1]:
        yield good(folder, f"a run goes on from {newest}")
    elif complete:
        yield problem(
            folder,
            f"the newest checkpoint, {newest}, cannot be used; a run goes on from {complete[-1].name}, the newest that"
            " can, and sets aside what is newer",
        )
    else:
        yield problem(folder, "no checkpoint can be used; bring one back from a copy, or begin the run anew")


def _examine_space(folder: Path, config: RunConfig) -> Iterator[Finding]:
    """Room for the checkpoints to come: the newest, the best, and the one that is written before another goes."""
    paths = checkpoint_folders(folder / CHECKPOINTS) if (folder / CHECKPOINTS).is_dir() else []
    sizes = [sum(file.stat().st_size for file in path.iterdir()) for path in paths]
    size = max(sizes, default=BYTES_A_PARAMETER * cost_of(config.model).parameters)
    wanted = size * max(1, config.training.keep_checkpoints + 2 - len(paths))
    free = shutil.disk_usage(folder).free
    told = (
        f"{free / 1e9:,.1f} GB free; a checkpoint has {size / 1e6:,.1f} MB, and {config.training.keep_checkpoints} are"
        " kept beside the best"
    )
    if free < wanted:
        yield problem(
            folder, f"{told}: {wanted / 1e9:,.1f} GB are wanted; free some, or lower training.keep_checkpoints"
        )
    else:
        yield good(folder, told)


def examine_metrics(path: Path) -> Iterator[Finding]:
    """The records of a run, line by line."""
    if not os.path.lexists(path):
        yield note(path, "there are no records yet")
        return
    n_lines, last_update, is_torn = 0, 0, False
    broken, strange, skipped, backwards = Tally(), Tally(), Tally(), Tally()
    with open_regular(path) as stream:
        for n_lines, line in enumerate(decoded_lines(stream, str(path), errors="surrogateescape"), start=1):
            if is_torn:  # a line before this one, which was not the last
                broken.add(n_lines - 1)
            record = _record(line)
            is_torn = record is None
            if record is None:
                continue
            if any(name in record and not _is_number(record[name]) for name in FINITE):
                strange.add(n_lines)
            if record.get("kind") == SkipRecord.kind:
                skipped.add(n_lines)
            if record["update"] < last_update:
                backwards.add(n_lines)
            last_update = max(last_update, record["update"])
    if is_torn:
        yield note(
            path, f"the last line, {n_lines:,}, is torn: a process was killed as it wrote; a resumed run drops it"
        )
    lower = "lower training.lr_factor or set training.clip_norm"
    advice = "remove them, or the run cannot go on"
    yield from on_lines("problem", path, broken, "line", "with no record", advice)
    what, advice = "whose loss or gradient is not a finite number", f"go back to an older checkpoint, and {lower}"
    yield from on_lines("problem", path, strange, "record", what, advice)
    what, advice = "left out, since loss or gradient was not finite", f"if there are many, {lower}"
    yield from on_lines("note", path, skipped, "update", what, advice)
    if backwards.count:
        yield note(path, f"{counted(backwards.count, 'record')} of updates before those above ({backwards})")
    n_records = n_lines - broken.count - is_torn
    yield good(path, f"{counted(n_records, 'record')}, the last of update {last_update:,}")


def _record(line: str) -> dict[str, Any] | None:
    """A record of an update; None for what is none."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) and type(values.get("update")) is int else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
