"""Prepared folders: what training reads, whatever the task. Each task fills its own (``Task.prepare``).

A prepared folder::

    tokenizer.json  train/  dev/  dev.src  dev.tgt  test.src  test.tgt  prepared.json  manifest.json

``dev/`` is missing where the corpus has no dev part; texts are there where a task keeps any. The stores have manifests
of their own. In folders of earlier versions ``prepared.json`` has no format, and there may be no manifest beside it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from transduce.config import DataConfig, Split, config_from_mapping
from transduce.config.migrations import tables_of_format_1
from transduce.corpora import CleaningReport, read_aligned_files
from transduce.data import Store
from transduce.errors import ConfigError, DataError, quoted
from transduce.files import (
    MANIFEST_NAME,
    Migration,
    atomic_folder,
    migrated,
    read_json,
    sha256_of_file,
    verify_manifest,
    write_json,
    write_manifest,
)
from transduce.tasks.registry import task_named
from transduce.text import Tokenizers

__all__ = ["EVALUATED", "Prepared", "new_prepared", "open_prepared", "prepare"]

MIGRATIONS: tuple[Migration, ...] = (dict, tables_of_format_1)  # the first number came with a manifest
FORMAT = len(MIGRATIONS)
PREPARED_FILE = "prepared.json"
EVALUATED: tuple[Split, ...] = ("dev", "test")


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that training and validation read."""

    folder: Path
    config: DataConfig
    tokenizers: Tokenizers
    train: Store
    dev: Store | None
    text_names: Mapping[str, str]  # what dev and test are called, where they are

    @property
    def fingerprint(self) -> str:
        """Of all that training reads, the tokenizers and every id, whatever the formats of the files about them."""
        manifests = [(self.folder / split / MANIFEST_NAME) for split in ("train", "dev")]
        parts = [self.tokenizers.fingerprint, *(_fingerprint(path) for path in manifests if path.exists())]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def text(self, split: Split) -> tuple[list[str], list[str]] | None:
        """Source and target lines of dev or test; None where the corpus has no such part, or the task keeps no text.

        Raises DataError if they do not align.
        """
        files = [self.folder / name for name in task_named(self.config.task).text_files(split)]
        if split not in self.text_names or not files:
            return None
        pairs = list(read_aligned_files(*files))
        return [src for src, _ in pairs], [tgt for _, tgt in pairs]


def prepare(
    config: DataConfig,
    folder: Path,
    *,
    data_folder: Path | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Prepared:
    """Make what a task's training reads: tokenizers, and the stores of train and dev. Section 5.1.

    ``data_folder`` is where corpora are looked for first. ``log`` receives a line about each step.
    Raises DataError if the text cannot be used, ConfigError if it is not named, or there is no such task.
    """
    task_named(config.task).prepare(config, folder, data_folder=data_folder, log=log)
    return open_prepared(folder)


@contextmanager
def new_prepared(
    config: DataConfig,
    folder: Path,
    text_names: Mapping[Split, str],
    reports: Mapping[str, CleaningReport] | None = None,
) -> Iterator[Path]:
    """A prepared folder to be filled with tokenizers and stores: there is one afterwards, whole, or none.

    ``text_names`` says what dev and test are called, where they are; ``reports`` tells of the cleaning of each corpus.
    """
    with atomic_folder(folder) as temporary:
        yield temporary
        cleaning = {corpus: report.as_json() for corpus, report in (reports or {}).items()}
        description = {"format": FORMAT, "data": config.model_dump(), "cleaning": cleaning, "text_names": text_names}
        write_json(temporary / PREPARED_FILE, description)
        write_manifest(temporary)


def open_prepared(folder: Path, *, expected: DataConfig | None = None) -> Prepared:
    """Open and check a prepared folder.

    Raises DataError if it is not one or is corrupt, CheckpointError if its tokenizers cannot be used, ConfigError if it
    was made with other settings than ``expected``.
    """
    config, text_names = _read_description(folder)
    for name in DataConfig.model_fields if expected is not None else ():
        got, want = getattr(config, name), getattr(expected, name)
        if name == "corpus" and expected is not None and list(config.weights) == list(expected.weights):
            continue  # weights are of no account here: they choose among the rows of a store
        if name != "max_dropped_share" and got != want:  # what has been prepared was not refused
            raise ConfigError(
                f"{folder} was prepared with data.{name} = {got!r}, this run has {want!r}; prepare it anew"
            )
    tokenizers, task = Tokenizers.load(folder), task_named(config.task)
    if "dev" not in text_names and os.path.lexists(folder / "dev"):
        raise DataError(f"{folder / PREPARED_FILE} names no dev text, but there is {folder / 'dev'}; prepare it anew")
    dev = task.open_store(folder / "dev", tokenizers) if "dev" in text_names else None
    train = task.open_store(folder / "train", tokenizers)
    return Prepared(folder, config, tokenizers, train, dev, text_names)


def _read_description(folder: Path) -> tuple[DataConfig, dict[str, str]]:
    """What ``prepared.json`` says, and what the texts are called that are there. Raises DataError if it is wrong."""
    path = folder / PREPARED_FILE
    written = read_json(path)
    try:
        description = migrated(written, MIGRATIONS, where=path)
    except DataError as error:
        raise DataError(f"{error}; prepare it anew") from error
    values, text_names = description.get("data"), description.get("text_names")
    if not isinstance(values, dict) or not isinstance(text_names, dict):
        raise DataError(f"{path} should have the tables 'data' and 'text_names'; prepare it anew")
    try:
        config = config_from_mapping(DataConfig, values, where=path)
        files_of = {split: task_named(config.task).text_files(split) for split in EVALUATED}
    except ConfigError as error:
        raise DataError(f"{error}; prepare it anew") from error
    if has_manifest(folder) or "format" in written:
        names = (name for split in EVALUATED if split in text_names for name in files_of[split])
        verify_manifest(folder, error=DataError, required=(PREPARED_FILE, *Tokenizers.files(folder), *names))
    for split, name in text_names.items():
        if split not in EVALUATED or not isinstance(name, str):
            raise DataError(f"{path}: text_names should name dev and test, got {quoted(text_names)}")
    for split in EVALUATED:
        for name in files_of[split]:
            if (folder / name).is_file() != (split in text_names):
                does = "does not name" if (folder / name).exists() else "names"
                raise DataError(f"{path} {does} {split} text, against what is there ({name}); prepare it anew")
    return config, text_names


def _fingerprint(manifest: Path) -> str:
    """Of the numbers in a store; of an earlier version's, which had no format, that of its manifest, as it had it."""
    values = read_json(manifest)
    if "format" not in values:
        return sha256_of_file(manifest)
    arrays = sorted((name, entry["sha256"]) for name, entry in values["files"].items() if name.endswith(".npy"))
    return hashlib.sha256(str(arrays).encode()).hexdigest()


def has_manifest(folder: Path) -> bool:
    """Whether a prepared folder says what its files should be: those of earlier versions may not."""
    return os.path.lexists(folder / MANIFEST_NAME)
