"""The pairs of a corpus by split, as a configuration names them: one door to all corpora."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import assert_never

from transduce.config import DataConfig
from transduce.corpora.cleaning import CleaningReport, CleaningRules, clean
from transduce.corpora.grammar import Split, generate_pairs
from transduce.corpora.parallel_files import read_aligned_files, read_tab_separated
from transduce.errors import ConfigError

__all__ = ["GRAMMAR_DEV_PAIRS", "GRAMMAR_TEST_PAIRS", "Split", "has_split", "read_clean_pairs", "read_pairs"]

GRAMMAR_DEV_PAIRS = 500
GRAMMAR_TEST_PAIRS = 1000


def has_split(config: DataConfig, split: Split) -> bool:
    """Whether the corpus has such a part. Only files of one's own may lack dev or test."""
    return config.corpus != "files" or _tsv(config, split) is not None or _src(config, split) is not None


def read_pairs(config: DataConfig, split: Split, *, escape_invalid: bool = False) -> Iterator[tuple[str, str]]:
    """(source, target) lines of a split, in a fixed order, as a stream, as they are.

    Bytes that are not UTF-8 are an error, or with ``escape_invalid`` become lone surrogates.

    Raises ConfigError if the configuration names no such text, DataError if the text cannot be read.
    """
    match config.corpus:
        case "grammar":
            return _read_grammar(config, split)
        case "files":
            return _read_files(config, split, escape_invalid=escape_invalid)
        case _:
            assert_never(config.corpus)


def _read_grammar(config: DataConfig, split: Split) -> Iterator[tuple[str, str]]:
    if config.direction not in ("en-de", "de-en"):
        raise ConfigError(f"the grammar corpus is English and German, got direction = {config.direction!r}")
    n_pairs = {"train": config.n_pairs, "dev": GRAMMAR_DEV_PAIRS, "test": GRAMMAR_TEST_PAIRS}[split]
    pairs = generate_pairs(split, n_pairs=n_pairs, seed=config.corpus_seed)
    return ((pair.en, pair.de) if config.src_language == "en" else (pair.de, pair.en) for pair in pairs)


def read_clean_pairs(config: DataConfig, report: CleaningReport) -> Iterator[tuple[str, str]]:
    """The training pairs that may be trained on, as a stream; ``report`` says which were not, and why.

    Raises as ``read_pairs`` does, but for bytes that are not UTF-8: those pairs are left out.
    """
    rules = CleaningRules(
        max_characters=config.max_characters,
        max_length_ratio=config.max_length_ratio,
        drop_identical=config.drop_identical,
        drop_duplicates=config.drop_duplicates,
    )
    return clean(read_pairs(config, "train", escape_invalid=True), rules, report)


def _read_files(config: DataConfig, split: Split, *, escape_invalid: bool) -> Iterator[tuple[str, str]]:
    src, tgt, tsv = _src(config, split), _tgt(config, split), _tsv(config, split)
    if tsv is not None:
        return read_tab_separated(Path(tsv), escape_invalid=escape_invalid)
    if src is None or tgt is None:
        raise ConfigError(f"no {split} text: set data.{split}_src and data.{split}_tgt, or data.{split}_tsv")
    return read_aligned_files(Path(src), Path(tgt), escape_invalid=escape_invalid)


def _src(config: DataConfig, split: Split) -> str | None:
    return {"train": config.train_src, "dev": config.dev_src, "test": config.test_src}[split]


def _tgt(config: DataConfig, split: Split) -> str | None:
    return {"train": config.train_tgt, "dev": config.dev_tgt, "test": config.test_tgt}[split]


def _tsv(config: DataConfig, split: Split) -> str | None:
    return {"train": config.train_tsv, "dev": config.dev_tsv, "test": config.test_tsv}[split]
