"""The user's own parallel text: cleaned, and divided into train, dev and test."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from transduce.config import SPLITS, ParallelData, config_from_mapping
from transduce.corpora import CleaningReport, CleaningRules, checks, clean, hold_out, read_aligned_files
from transduce.corpora.parallel_files import read_uncleaned_columns
from transduce.corpora.parallel_text import require_text
from transduce.errors import DataError
from transduce.files import write_lines
from transduce.findings.finding import counted

__all__ = ["Log", "OwnText", "data_config", "data_of_splits", "write_splits"]

Log = Callable[[str], None]

FEW_PAIRS, FEW_HELD_OUT = 5000, 100  # fewer training pairs, and fewer of dev or test, cause a warning
MIN_TRAIN = 30  # fewer training pairs are refused


@dataclass(frozen=True, slots=True)
class OwnText:
    """The user's parallel text: two files aligned by line, or one file with two columns."""

    src_language: str
    tgt_language: str
    src: Path | None = None
    tgt: Path | None = None
    tsv: Path | None = None
    max_dropped_share: float = 0.3  # fraction of the pairs that cleaning may drop
    has_terms: bool = False  # the model is to use lists of terms
    is_kept: bool = True  # the files stay if the text cannot be used
    to_allow: str = "--max-dropped-share 1"  # the option by which the rest is trained on anyway; empty: there is none

    @property
    def is_one_language(self) -> bool:
        """Whether both sides are in one language, as in correction, where lines that stay as they are belong to it."""
        return self.src_language == self.tgt_language

    @property
    def rules(self) -> CleaningRules:
        """What cleaning drops."""
        return CleaningRules(drop_identical=not self.is_one_language)

    def names_of(self, split: str) -> tuple[str, str]:
        """The names of the source and target file of a split.

        >>> OwnText("en", "de").names_of("dev"), OwnText("en", "en").names_of("dev")
        (('dev.en', 'dev.de'), ('dev.src.en', 'dev.tgt.en'))
        """
        sides = (".src", ".tgt") if self.is_one_language else ("", "")
        return f"{split}{sides[0]}.{self.src_language}", f"{split}{sides[1]}.{self.tgt_language}"

    @property
    def files(self) -> dict[str, Path]:
        """The files by their keys in a recipe."""
        named = {"train_tsv": self.tsv} if self.tsv else {"train_src": self.src, "train_tgt": self.tgt}
        return {name: path for name, path in named.items() if path is not None}

    @property
    def part(self) -> checks.TextPart:
        """The text as ``corpora.checks`` reads it."""
        return checks.column_part(self.tsv) if self.tsv else checks.two_file_part(*self.files.values())

    def pairs(self) -> Iterator[tuple[str, str] | None]:
        """Iterate over the uncleaned pairs. Raises DataError if the files do not align."""
        if self.tsv is not None:
            return read_uncleaned_columns(self.tsv)
        return read_aligned_files(*self.files.values(), escape_invalid=True)


def write_splits(text: OwnText, folder: Path, log: Log) -> tuple[int, int, int, int]:
    """Write train, dev and test. Returns their numbers of pairs, and that of training pairs left out as similar."""
    for path in text.files.values():
        require_text(path)
    report = CleaningReport()

    def clean_pairs() -> Iterator[tuple[str, str]]:
        return clean(text.pairs(), text.rules, CleaningReport())

    for _ in clean(text.pairs(), text.rules, report):
        pass  # only to fill the report
    for line in report.lines():
        log(line)
    config = data_config(text, text.files, max_dropped_share=text.max_dropped_share)
    drop_remark = checks.remark_on_dropped(
        "files", report, config, to_allow=text.to_allow, has_recipe=False, is_kept=text.is_kept
    )
    if drop_remark is not None and drop_remark.status == "problem":
        raise DataError(str(drop_remark))
    languages = text.src_language, text.tgt_language
    remarks = [*checks.remarks_on_codes(config), *checks.remarks_on_part(text.part, languages)]
    for remark in [drop_remark, *remarks] if drop_remark is not None else remarks:
        log(f"warning: {remark}")
    held_out = hold_out(clean_pairs)
    _write_pairs(folder, "dev", text, held_out.dev)
    _write_pairs(folder, "test", text, held_out.test)
    n_train = _write_pairs(folder, "train", text, held_out.train(clean_pairs()))
    n_held_out = min(len(held_out.dev), len(held_out.test))
    if not n_held_out or n_train < MIN_TRAIN:
        raise DataError(
            "the text is too repetitive to hold out dev and test: training pairs that share a source or target with "
            f"them are left out, and {counted(n_train, 'pair')} would remain; use text with more distinct sentences"
        )
    log(
        f"held out: {len(held_out.dev):,} pairs for dev and {len(held_out.test):,} for test; {n_train:,} to train on, "
        f"{held_out.n_left_out:,} left out as too similar to dev or test"
    )
    if n_train < FEW_PAIRS:
        log(f"warning: {n_train:,} pairs are few for a translator; it will know only words and phrases of this text")
    if n_held_out < FEW_HELD_OUT:
        log(f"warning: scores of dev and test are of {n_held_out} pairs each: another draw would give others")
    return n_train, len(held_out.dev), len(held_out.test), held_out.n_left_out


def _write_pairs(folder: Path, split: str, text: OwnText, pairs: Iterable[tuple[str, str]]) -> int:
    """Write the two files of a split; targets are buffered on disk while sources are written."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as targets:

        def sources() -> Iterator[str]:
            for src, tgt in pairs:
                targets.write(tgt + "\n")
                yield src

        src, tgt = (folder / name for name in text.names_of(split))
        n_lines = write_lines(src, sources())
        targets.seek(0)
        write_lines(tgt, (line.removesuffix("\n") for line in targets))
    return n_lines


def data_of_splits(text: OwnText, folder: Path, /, **settings: object) -> ParallelData:
    """Return the data configuration that names the train, dev and test files in ``folder``, with further settings."""
    files = {
        f"{split}_{side}": folder / name
        for split in SPLITS
        for side, name in zip(("src", "tgt"), text.names_of(split), strict=True)
    }
    return data_config(text, files, **settings)


def data_config(text: OwnText, files: Mapping[str, Path], **more: object) -> ParallelData:
    """Return the data configuration that names text files, with further settings."""
    values = {name: str(path) for name, path in files.items()} | more
    if text.is_one_language:
        values["drop_identical"] = False
    if text.has_terms:
        values["terms"] = True
    direction = f"{text.src_language}-{text.tgt_language}"
    return config_from_mapping(ParallelData, {"corpus": "files", "direction": direction, **values}, where="data")
