"""Prepared folders: tokenizers and stores, the input of training.

A prepared folder::

    tokenizer.json  train/  dev/  dev.src  dev.tgt  test.src  test.tgt  prepared.json  manifest.json

``dev/`` exists if the corpus has a dev split, text files if the task keeps text. The stores have their own manifests.
In folders of earlier versions ``prepared.json`` has no format, and ``manifest.json`` may be missing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from transduce.config import DataConfig, PairsData, Split, config_from_mapping, without_unread
from transduce.config.migrations import tables_of_format_1, tables_of_format_3
from transduce.corpora import Report, read_aligned_files
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
from transduce.inference.folder import read_tokenizers
from transduce.inference.translation.mask_statistics import MaskCounts, MaskStatistics
from transduce.tasks.registry import task_named
from transduce.text import Tokenizers

__all__ = ["EVALUATION_SPLITS", "Prepared", "also_dev_name", "has_manifest", "new_prepared", "open_prepared"]

# dict: format 1 added only the manifest.
MIGRATIONS: tuple[Migration, ...] = (dict, tables_of_format_1, tables_of_format_3)
FORMAT = len(MIGRATIONS)
PREPARED_FILE = "prepared.json"
EVALUATION_SPLITS: tuple[Split, ...] = ("dev", "test")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared folder, open for training and validation."""

    folder: Path
    config: DataConfig
    tokenizers: Tokenizers
    train: Store
    dev: Store | None
    text_names: Mapping[str, str]  # names of the dev and test texts, if any
    masks: MaskStatistics | None = None  # None in folders of earlier versions

    @property
    def also_dev(self) -> dict[str, Store]:
        """The further dev sets, by corpus."""
        config, task = self.config, task_named(self.config.task)
        names = config.also_dev if isinstance(config, PairsData) else ()
        return {name: task.open_store(self.folder / also_dev_name(name), self.tokenizers) for name in names}

    def also_dev_text(self, corpus: str) -> tuple[list[str], list[str]]:
        """Return the source and target lines of a further dev set. Raises DataError if they do not align."""
        return _columns(self.folder / f"{also_dev_name(corpus)}.{side}" for side in ("src", "tgt"))

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the tokenizers and all ids, independent of file formats."""
        manifests = [(self.folder / split / MANIFEST_NAME) for split in ("train", "dev")]
        parts = [self.tokenizers.fingerprint, *(_fingerprint(path) for path in manifests if path.exists())]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def text(self, split: Split) -> tuple[list[str], list[str]] | None:
        """Return the source and target lines of dev or test; None if there is no such text.

        Raises DataError if they do not align.
        """
        files = [self.folder / name for name in task_named(self.config.task).text_files(split)]
        if split not in self.text_names or not files:
            return None
        return _columns(files)


def _columns(files: Iterable[Path]) -> tuple[list[str], list[str]]:
    pairs = list(read_aligned_files(*files))
    return [src for src, _ in pairs], [tgt for _, tgt in pairs]


def also_dev_name(corpus: str) -> str:
    """Return the name of a further dev set in a prepared folder: of its store, and of its text files."""
    return f"dev-{corpus}"


@contextmanager
def new_prepared(
    config: DataConfig,
    folder: Path,
    text_names: Mapping[Split, str],
    reports: Mapping[str, Report] | None = None,
    masks: MaskCounts | None = None,
) -> Iterator[Path]:
    """Write a prepared folder atomically: the block writes tokenizers, stores and text into the folder yielded.

    ``text_names`` are the names of the dev and test texts, if any. When the block ends, ``reports`` say what of each
    corpus was left out, and ``masks`` has counted the training pairs.
    """
    with atomic_folder(folder) as temporary:
        yield temporary
        cleaning = {corpus: report.as_json() for corpus, report in (reports or {}).items()}
        description = {"format": FORMAT, "data": config.model_dump(), "cleaning": cleaning, "text_names": text_names}
        if masks is not None:
            description["masks"] = masks.as_json()
        write_json(temporary / PREPARED_FILE, description)
        write_manifest(temporary)


def open_prepared(folder: Path, *, expected: DataConfig | None = None) -> Prepared:
    """Open and check a prepared folder.

    Raises DataError if it is invalid or corrupt, CheckpointError if its tokenizers cannot be used, ConfigError if it
    was made with other settings than ``expected``.
    """
    config, text_names, masks = _read_description(folder)
    same_vocabulary = _OF_VOCABULARIES if expected is not None and _has_vocabulary_of(folder, config, expected) else ()
    for name in ("task", *type(expected).model_fields) if expected is not None else ():
        got, want = getattr(config, name), getattr(expected, name)
        if name in same_vocabulary:
            continue
        if name == "corpus" and expected is not None and list(config.weights) == list(expected.weights):
            continue  # corpus weights apply when epochs are sampled, not to the store
        if name != "max_dropped_share" and got != want:  # that limit was checked in preparation
            raise ConfigError(
                f"{folder} was prepared with data.{name} = {got!r}, this run has {want!r}; prepare it again"
            )
    tokenizers, task = Tokenizers.load(folder), task_named(config.task)
    if "dev" not in text_names and os.path.lexists(folder / "dev"):
        raise DataError(f"{folder / PREPARED_FILE} names no dev text, but {folder / 'dev'} exists; prepare it again")
    dev = task.open_store(folder / "dev", tokenizers) if "dev" in text_names else None
    train = task.open_store(folder / "train", tokenizers)
    return Prepared(folder, config, tokenizers, train, dev, text_names, masks)


# Settings that have no effect when the vocabulary is that of another model.
_OF_VOCABULARIES = ("tokenizer_from", "tokenizer", "alphabet", "min_pair_count", "vocab_size")


def _has_vocabulary_of(folder: Path, config: DataConfig, expected: DataConfig) -> bool:
    """Whether a prepared folder has the vocabulary of the model that ``expected.tokenizer_from`` names."""
    if expected.tokenizer_from is None or expected.tokenizer_from == config.tokenizer_from:
        return False
    theirs = read_tokenizers(Path(expected.tokenizer_from))
    return Tokenizers.load(folder).src.fingerprint == theirs.src.fingerprint


def _without_text(folder: Path) -> str:
    """Say that a folder is not prepared text, and where that of a run is, or how to make it."""
    missing = f"{folder} is not prepared text (there is no {PREPARED_FILE})"
    beside = [each / "store" for each in (folder, folder.parent) if (each / "store" / PREPARED_FILE).is_file()]
    return f"{missing}; that of the run is {beside[0]}" if beside else f"{missing}; transduce prepare makes it"


def _read_description(folder: Path) -> tuple[DataConfig, dict[str, str], MaskStatistics | None]:
    """Return the contents of ``prepared.json``. Raises DataError if they are invalid."""
    path = folder / PREPARED_FILE
    if not os.path.lexists(path):
        raise DataError(_without_text(folder))
    stored = read_json(path)
    try:
        description = migrated(stored, MIGRATIONS, where=path)
    except DataError as error:
        raise DataError(f"{error}; prepare it again") from error
    values, text_names = description.get("data"), description.get("text_names")
    if not isinstance(values, dict) or not isinstance(text_names, dict):
        raise DataError(f"{path} should have the tables 'data' and 'text_names'; prepare it again")
    try:
        config = config_from_mapping(DataConfig, without_unread({"data": values})["data"], where=path)
        files_of = {split: task_named(config.task).text_files(split) for split in EVALUATION_SPLITS}
    except ConfigError as error:
        raise DataError(f"{error}; prepare it again") from error
    if has_manifest(folder) or "format" in stored:
        names = (name for split in EVALUATION_SPLITS if split in text_names for name in files_of[split])
        verify_manifest(folder, error=DataError, required=(PREPARED_FILE, *Tokenizers.files(folder), *names))
    for split, name in text_names.items():
        if split not in EVALUATION_SPLITS or not isinstance(name, str):
            raise DataError(f"{path}: text_names should name dev and test, got {quoted(text_names)}")
    for split in EVALUATION_SPLITS:
        for name in files_of[split]:
            if (folder / name).is_file() != (split in text_names):
                problem = "does not name" if (folder / name).exists() else "names"
                exists = "exists" if (folder / name).exists() else "does not exist"
                raise DataError(f"{path} {problem} {split} text, but {name} {exists}; prepare it again")
    return config, text_names, MaskStatistics.from_json(description.get("masks"), where=path, error=DataError)


def _fingerprint(manifest: Path) -> str:
    """Fingerprint of the arrays of a store; of the manifest itself if that has no format (earlier versions)."""
    values = read_json(manifest)
    if "format" not in values:
        return sha256_of_file(manifest)
    arrays = sorted((name, entry["sha256"]) for name, entry in values["files"].items() if name.endswith(".npy"))
    return hashlib.sha256(str(arrays).encode()).hexdigest()


def has_manifest(folder: Path) -> bool:
    """Whether a prepared folder has a manifest; those of earlier versions may not."""
    return os.path.lexists(folder / MANIFEST_NAME)
