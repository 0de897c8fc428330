"""From text to what training reads: tokenizers, token stores of train and dev, and the dev and test text.

A prepared folder::

    tokenizer.json  train/  dev/  dev.src  dev.tgt  test.src  test.tgt  prepared.json  manifest.json

``dev/`` and the dev text are missing where the corpus has no dev part, and likewise test. The stores have manifests of
their own. In folders of earlier versions ``prepared.json`` has no format, and there may be no manifest beside it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, starmap
from pathlib import Path
from typing import assert_never

from transduce.config import DataConfig, Split, config_from_mapping
from transduce.config.migrations import tables_of_format_1
from transduce.corpora import CleaningReport, PairedText, paired_text, read_aligned_files
from transduce.corpora.checks import remark_on_dropped, remarks_on_own_files
from transduce.data import PairDropout, PairStore, StoreSummary, open_pairs, write_pairs
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
    write_lines,
    write_manifest,
)
from transduce.text import Tokenizers, normalise, train_bpe, train_symbols, train_wordpiece
from transduce.text.masks import mask_pair, mask_words, without_masks

__all__ = ["Prepared", "open_prepared", "prepare"]

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
    train: PairStore
    dev: PairStore | None
    text_names: Mapping[str, str]  # what dev and test are called, where they are

    @property
    def fingerprint(self) -> str:
        """Of all that training reads: the tokenizers and every id."""
        manifests = [(self.folder / split / MANIFEST_NAME) for split in ("train", "dev")]
        parts = [self.tokenizers.fingerprint, *(sha256_of_file(path) for path in manifests if path.exists())]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def text(self, split: Split) -> tuple[list[str], list[str]] | None:
        """Source and target lines of dev or test; None where the corpus has no such part.

        Raises DataError if they do not align.
        """
        if split not in self.text_names:
            return None
        pairs = list(read_aligned_files(*(self.folder / name for name in _text_files(split))))
        return [src for src, _ in pairs], [tgt for _, tgt in pairs]


def prepare(
    config: DataConfig,
    folder: Path,
    *,
    data_folder: Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Prepared:
    """Train the tokenizer on the training text, and encode train and dev. Section 5.1.

    ``data_folder`` is where corpora are looked for first. ``tell`` receives a line about each step.
    Raises DataError if the text cannot be used, ConfigError if it is not named.
    """
    text = paired_text(config, data_folder)
    with atomic_folder(folder) as temporary:
        for split in filter(text.has, EVALUATED):  # first, since what is wrong there should not be found after hours
            _write_text(text, split, temporary)
        for remark in remarks_on_own_files(config):
            tell(f"warning: {remark}")
        tokenizers = _train_tokenizers(text, tell)
        tell(_sentence_about_tokenizers(tokenizers, config))
        tokenizers.save(temporary)
        reports = _new_reports(text)
        train = write_pairs(
            temporary / "train",
            {
                corpus: chain(_train_pairs(text, corpus, report), text.made_train_pairs(corpus))
                for corpus, report in reports.items()
            },
            tokenizers,
            max_length=config.max_length,
            dropout=_dropout(config, tokenizers),
        )
        for corpus, report in reports.items():
            for line in report.lines():
                tell(f"{corpus}: {line}")
        tell(_sentence("train", train))
        if text.has("dev"):
            dev_pairs = starmap(mask_pair, text.pairs("dev")) if config.masks else text.pairs("dev")
            dev = write_pairs(temporary / "dev", {"dev": dev_pairs}, tokenizers, max_length=config.max_length)
            tell(_sentence("dev", dev))
        cleaning = {corpus: report.as_json() for corpus, report in reports.items()}
        names = {split: text.name_of(split) for split in EVALUATED if text.has(split)}
        description = {"format": FORMAT, "data": config.model_dump(), "cleaning": cleaning, "text_names": names}
        write_json(temporary / PREPARED_FILE, description)
        write_manifest(temporary)
    return open_prepared(folder)


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
        if name == "max_dropped_share":
            continue  # what has been prepared was not refused
        if got != want:
            raise ConfigError(
                f"{folder} was prepared with data.{name} = {got!r}, this run has {want!r}; prepare it anew"
            )
    tokenizers = Tokenizers.load(folder)
    if "dev" not in text_names and os.path.lexists(folder / "dev"):
        raise DataError(f"{folder / PREPARED_FILE} names no dev text, but there is {folder / 'dev'}; prepare it anew")
    dev = open_pairs(folder / "dev", tokenizers) if "dev" in text_names else None
    train = open_pairs(folder / "train", tokenizers)
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
    if has_manifest(folder) or "format" in written:
        names = (name for split in EVALUATED if split in text_names for name in _text_files(split))
        verify_manifest(folder, error=DataError, required=(PREPARED_FILE, *Tokenizers.files(folder), *names))
    for split, name in text_names.items():
        if split not in EVALUATED or not isinstance(name, str):
            raise DataError(f"{path}: text_names should name dev and test, got {quoted(text_names)}")
    for split in EVALUATED:
        for name in _text_files(split):
            if (folder / name).is_file() != (split in text_names):
                does = "does not name" if (folder / name).exists() else "names"
                raise DataError(f"{path} {does} {split} text, against what is there ({name}); prepare it anew")
    try:
        return config_from_mapping(DataConfig, values, where=path), text_names
    except ConfigError as error:
        raise DataError(f"{error}; prepare it anew") from error


def has_manifest(folder: Path) -> bool:
    """Whether a prepared folder says what its files should be: those of earlier versions may not."""
    return os.path.lexists(folder / MANIFEST_NAME)


def _text_files(split: Split) -> tuple[str, str]:
    return f"{split}.src", f"{split}.tgt"


def _train_tokenizers(text: PairedText, tell: Callable[[str], None]) -> Tokenizers:
    """Raises DataError, with what the cleaning has found, if it leaves no text to learn from, or too little of it."""
    reports = _new_reports(text)
    try:
        tokenizers = _learn_tokenizers(text, reports)
    except DataError as error:
        if any(report.n_kept for report in reports.values()):
            raise
        found = "; ".join(f"{corpus}: {', '.join(report.lines())}" for corpus, report in reports.items())
        raise DataError(f"no training pair can be used: {found}") from error
    remarks = [remark_on_dropped(corpus, report, text.config) for corpus, report in reports.items()]
    for remark in filter(None, remarks):
        if remark.status == "problem":
            raise DataError(str(remark))
        tell(f"warning: {remark}")
    return tokenizers


def _new_reports(text: PairedText) -> dict[str, CleaningReport]:
    return {corpus: CleaningReport() for corpus in text.corpora}


def _learn_tokenizers(text: PairedText, reports: Mapping[str, CleaningReport]) -> Tokenizers:
    config = text.config
    match config.tokenizer:
        case "bpe":
            train = partial(train_bpe, masks=config.masks)
        case "wordpiece":
            train = partial(train_wordpiece, masks=config.masks)
        case _:
            assert_never(config.tokenizer)
    if config.task == "parsing":
        src = train(_sides(text, (0,), reports), vocab_size=config.vocab_size)
        return Tokenizers(src, train_symbols(_sides(text, (1,), _new_reports(text))))
    if config.shared_vocabulary:
        shared = train(_sides(text, (0, 1), reports), vocab_size=config.vocab_size)
        return Tokenizers(shared, shared)
    src = train(_sides(text, (0,), reports), vocab_size=config.vocab_size)
    return Tokenizers(src, train(_sides(text, (1,), _new_reports(text)), vocab_size=config.vocab_size))


def _sides(text: PairedText, sides: tuple[int, ...], reports: Mapping[str, CleaningReport]) -> Iterator[str]:
    """The training text of one side or both, clean and normalised."""
    for corpus, report in reports.items():
        for pair in text.clean_train_pairs(corpus, report):
            told = tuple(map(without_masks, mask_pair(*pair))) if text.config.masks else pair
            for side in sides:
                yield normalise(told[side])


def _train_pairs(text: PairedText, corpus: str, report: CleaningReport) -> Iterator[tuple[str, str]]:
    """The clean pairs of a corpus, with masks and the further pairs that teach them where they are asked for."""
    pairs = text.clean_train_pairs(corpus, report)
    if not text.config.masks:
        yield from pairs
        return
    for pair in pairs:
        yield mask_pair(*pair)
        yield from mask_words(*pair)


def _dropout(config: DataConfig, tokenizers: Tokenizers) -> PairDropout | None:
    if not config.bpe_dropout:
        return None
    return PairDropout(tokenizers, p_drop=config.bpe_dropout, n_encodings=config.n_encodings, seed=config.corpus_seed)


def _write_text(text: PairedText, split: Split, folder: Path) -> None:
    """Write dev or test as it came: scores are of the text itself, not of what the tokenizer makes of it."""
    pairs = list(text.pairs(split))
    if not any(src.strip() for src, _ in pairs):
        raise DataError(f"{split} text {text.name_of(split)} has no line to translate; leave it out, or name another")
    src_file, tgt_file = _text_files(split)
    write_lines(folder / src_file, (src for src, _ in pairs))
    write_lines(folder / tgt_file, (tgt for _, tgt in pairs))


def _sentence_about_tokenizers(tokenizers: Tokenizers, config: DataConfig) -> str:
    src, tgt = f"{tokenizers.src.size:,}", f"{tokenizers.tgt.size:,}"
    sizes = src if tokenizers.is_shared else f"{src} and {tgt}"
    learned = (tokenizers.src.size, *([] if config.task == "parsing" else [tokenizers.tgt.size]))
    is_small = min(learned) < config.vocab_size
    why = f" ({config.vocab_size:,} were asked for, but no other pair occurs twice)" if is_small else ""
    return f"tokenizer: {sizes} symbols{why}"


def _sentence(split: Split, summary: StoreSummary) -> str:
    """What a store has come to, for people."""
    parts = [f"{split}: {summary.n_pairs:,} pairs"]
    if len(summary.n_pairs_of) > 1:
        parts.append(f" ({', '.join(f'{corpus} {n_pairs:,}' for corpus, n_pairs in summary.n_pairs_of.items())})")
    if summary.n_encodings > 1:
        parts.append(f" in {summary.n_encodings:,} encodings each")
    if left_out := summary.n_empty + summary.n_too_long:
        parts.append(f", {left_out:,} left out ({summary.n_empty:,} empty, {summary.n_too_long:,} too long)")
    return "".join(parts)
