"""From text to what training reads: tokenizers, token stores of train and dev, and the dev and test text.

A prepared folder::

    tokenizer.json  train/  dev/  dev.src  dev.tgt  test.src  test.tgt  prepared.json

``dev/`` and the dev text are missing where the corpus has no dev part, and likewise test.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from transduce.config import DataConfig, config_from_mapping
from transduce.corpora import CleaningReport, Split, has_split, read_clean_pairs, read_pairs
from transduce.data import StoreSummary, TokenStore, write_store
from transduce.errors import ConfigError, DataError
from transduce.files import (
    MANIFEST_NAME,
    atomic_folder,
    open_binary,
    read_json,
    read_lines,
    sha256_of_file,
    write_json,
    write_lines,
)
from transduce.text import Tokenizers, normalise, train_bpe, train_wordpiece

__all__ = ["Prepared", "open_prepared", "prepare"]

PREPARED_FILE = "prepared.json"


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that training and validation read."""

    folder: Path
    config: DataConfig
    tokenizers: Tokenizers
    train: TokenStore
    dev: TokenStore | None

    @property
    def fingerprint(self) -> str:
        """Of all that training reads: the tokenizers and every id."""
        manifests = [(self.folder / split / MANIFEST_NAME) for split in ("train", "dev")]
        parts = [self.tokenizers.fingerprint, *(sha256_of_file(path) for path in manifests if path.exists())]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def text(self, split: Split) -> tuple[list[str], list[str]] | None:
        """Source and target lines of dev or test; None where the corpus has no such part."""
        src, tgt = self.folder / f"{split}.src", self.folder / f"{split}.tgt"
        return (list(read_lines(src)), list(read_lines(tgt))) if src.exists() else None


def prepare(config: DataConfig, folder: Path, *, tell: Callable[[str], None] = lambda line: None) -> Prepared:
    """Train the tokenizer on the training text, and encode train and dev. Section 5.1.

    ``tell`` receives a line about each step.
    Raises DataError if the text cannot be used, ConfigError if it is not named.
    """
    for path in config.files():
        open_binary(path).close()  # a missing dev file should not be found after minutes
    with atomic_folder(folder) as temporary:
        tokenizers = _train_tokenizers(config)
        report = CleaningReport()
        tell(f"tokenizer: {tokenizers.src.size:,} symbols" + ("" if tokenizers.is_shared else " (source)"))
        tokenizers.save(temporary)
        train = write_store(
            temporary / "train", read_clean_pairs(config, report), tokenizers, max_length=config.max_length
        )
        for line in report.lines() if report.n_dropped or report.n_noticed else ():
            tell(f"train: {line}")
        tell(_sentence("train", train))
        if has_split(config, "dev"):
            _write_text(config, "dev", temporary)
            dev = read_pairs(config, "dev")
            tell(_sentence("dev", write_store(temporary / "dev", dev, tokenizers, max_length=config.max_length)))
        if has_split(config, "test"):
            _write_text(config, "test", temporary)
        write_json(temporary / PREPARED_FILE, {"data": config.model_dump(), "cleaning": report.as_json()})
    return open_prepared(folder)


def open_prepared(folder: Path, *, expected: DataConfig | None = None) -> Prepared:
    """Open and check a prepared folder.

    Raises DataError if it is not one or is corrupt, ConfigError if it was made with other settings than ``expected``.
    """
    values = read_json(folder / PREPARED_FILE).get("data")
    if not isinstance(values, dict):
        raise DataError(f"{folder / PREPARED_FILE} should have a table 'data'")
    config = config_from_mapping(DataConfig, values, where=str(folder / PREPARED_FILE))
    if expected is not None and config != expected:
        name = next(name for name in DataConfig.model_fields if getattr(config, name) != getattr(expected, name))
        got, want = getattr(config, name), getattr(expected, name)
        raise ConfigError(f"{folder} was prepared with data.{name} = {got!r}, this run has {want!r}; prepare it anew")
    tokenizers = Tokenizers.load(folder)
    dev = TokenStore.open(folder / "dev", tokenizers) if (folder / "dev").exists() else None
    return Prepared(folder, config, tokenizers, TokenStore.open(folder / "train", tokenizers), dev)


def _train_tokenizers(config: DataConfig) -> Tokenizers:
    match config.tokenizer:
        case "bpe":
            train = train_bpe
        case "wordpiece":
            train = train_wordpiece
        case _:
            assert_never(config.tokenizer)
    if config.shared_vocabulary:
        shared = train(_sides(config, (0, 1)), vocab_size=config.vocab_size)
        return Tokenizers(shared, shared)
    src, tgt = (train(_sides(config, (side,)), vocab_size=config.vocab_size) for side in (0, 1))
    return Tokenizers(src, tgt)


def _sides(config: DataConfig, sides: tuple[int, ...]) -> Iterator[str]:
    """The training text of one side or both, clean and normalised."""
    for pair in read_clean_pairs(config, CleaningReport()):
        for side in sides:
            yield normalise(pair[side])


def _write_text(config: DataConfig, split: Split, folder: Path) -> None:
    """Write dev or test as it came: scores are of the text itself, not of what the tokenizer makes of it."""
    pairs = list(read_pairs(config, split))
    write_lines(folder / f"{split}.src", (src for src, _ in pairs))
    write_lines(folder / f"{split}.tgt", (tgt for _, tgt in pairs))


def _sentence(split: Split, summary: StoreSummary) -> str:
    left_out = summary.n_empty + summary.n_too_long
    return f"{split}: {summary.n_pairs:,} pairs" + (
        f", {left_out:,} left out ({summary.n_empty:,} empty, {summary.n_too_long:,} too long)" if left_out else ""
    )
