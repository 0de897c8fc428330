"""The text that a configuration names, found and read by corpus and split: one door to all corpora."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from transduce.config import SPLITS, DataConfig, Split, nearest_name
from transduce.corpora.catalogue import BUILT_IN, CATALOGUE, OWN_FILES, Text, corpus_named
from transduce.corpora.cleaning import CleaningReport, CleaningRules, clean
from transduce.corpora.detokenising import detokenised
from transduce.corpora.formats import foreign_format
from transduce.corpora.grammar import GrammarPair, generate_pairs
from transduce.corpora.layout import data_folders, find_text, has_training_text
from transduce.corpora.paired_text import PairedText, Pairs, UncleanedPairs
from transduce.corpora.parallel_files import read_aligned_files, read_tab_separated, read_uncleaned_columns
from transduce.errors import ConfigError, DataError
from transduce.files import open_binary

__all__ = ["GRAMMAR_DEV_PAIRS", "GRAMMAR_TEST_PAIRS", "ParallelText", "grammar_pairs", "require_text"]

GRAMMAR_DEV_PAIRS = 500
GRAMMAR_TEST_PAIRS = 1000

N_NAMES_SHOWN = 8  # of the files in a folder, in an error

_WITHOUT_FOLDER = (BUILT_IN, OWN_FILES)  # the text of all other corpora lies in data folders


class ParallelText(PairedText):
    """Training text by corpus; dev and test text from the files that are named, or the first corpus that has such text.

    >>> from transduce.config import DataConfig
    >>> text = ParallelText(DataConfig(corpus="grammar", n_pairs=2))
    >>> text.corpora, len(list(text.pairs("dev"))), len(list(text.train_pairs("grammar")))
    (('grammar',), 500, 2)
    """

    def __init__(self, config: DataConfig, data_folder: Path | None = None) -> None:
        """Look in ``data_folder`` and where corpora are kept else.

        Raises ConfigError if a corpus is unknown or has not these languages, DataError if text is not there.
        """
        self.config = config
        self._folders = data_folders(data_folder)
        self._train_files = {name: self._find_train(name) for name in self.corpora if name not in _WITHOUT_FOLDER}
        for path in self.files:
            require_text(path)  # a missing dev file should not be found after minutes

    @property
    def files(self) -> list[Path]:
        """Every file that the recipe names, and those of the corpora that training reads."""
        named = [Path(name) for split in SPLITS for name in self.config.files_of(split) if name is not None]
        found = chain.from_iterable(self._train_files.values())
        return [*named, *chain.from_iterable(found)]

    def train_pairs(self, corpus: str) -> UncleanedPairs:
        """(source, target) lines of a corpus to train on, in a fixed order, as a stream; as they are, but detokenised.

        Bytes that are not UTF-8 become lone surrogates, and a line that is no pair None.
        """
        match corpus:
            case "grammar":
                return self._grammar_pairs("train")
            case "files":
                tsv = self.config.train_tsv
                return self._two_files("train") if tsv is None else read_uncleaned_columns(Path(tsv))
            case _:
                files = self._train_files[corpus]
                pairs = chain.from_iterable(read_aligned_files(src, tgt, escape_invalid=True) for src, tgt in files)
                if not corpus_named(corpus).is_tokenised:
                    return pairs
                return detokenised(pairs, self.config.src_language, self.config.tgt_language)

    def clean_train_pairs(self, corpus: str, report: CleaningReport) -> Pairs:
        """Those of ``train_pairs`` that may be trained on; ``report`` says which were left out, and why."""
        config = self.config
        rules = CleaningRules(
            max_characters=config.max_characters,
            max_length_ratio=config.max_length_ratio,
            drop_identical=config.drop_identical,
            drop_duplicates=config.drop_duplicates,
        )
        return clean(self.train_pairs(corpus), rules, report)

    def pairs(self, split: Split) -> Pairs:
        """(source, target) lines of dev or test, as a stream. Raises DataError if a line cannot be read."""
        tsv = self.config.files_of(split)[2]
        if tsv is not None:
            return read_tab_separated(Path(tsv))
        name = self._first_with(split)
        if self._names_files(split) or name is None:
            return self._two_files(split)
        if name == BUILT_IN:
            return self._grammar_pairs(split)
        texts = self._find(corpus_named(name).texts(split))
        return chain.from_iterable(read_aligned_files(src, tgt) for src, tgt in texts)

    def name_of(self, split: Split) -> str:
        """What dev or test text is called, to be told beside a score; "" where there is none."""
        if self._names_files(split):
            return " with ".join(name for name in self.config.files_of(split) if name is not None)
        name = self._first_with(split)
        if name is None or name == BUILT_IN:
            return f"{name} {split}" if name else ""
        there = (text for text in corpus_named(name).texts(split) if self._find((text,)))
        return ", ".join(f"{text.folder}/{text.stem}" for text in there)

    def _first_with(self, split: Split) -> str | None:
        """The first corpus that has dev or test."""
        for name in self.corpora:
            if name == BUILT_IN or (name != OWN_FILES and self._find(corpus_named(name).texts(split))):
                return name
        return None

    def _find(self, texts: tuple[Text, ...]) -> list[tuple[Path, Path]]:
        """The files of those texts that are there."""
        config = self.config
        found = (find_text(text, config.src_language, config.tgt_language, self._folders) for text in texts)
        return [paths for paths in found if paths is not None]

    def _find_train(self, name: str) -> list[tuple[Path, Path]]:
        """The training files of a corpus. Raises ConfigError or DataError unless every one is there."""
        src, tgt = self.config.src_language, self.config.tgt_language
        corpus = corpus_named(name)
        if not any(text.is_in(src, tgt) for text in corpus.train):
            known = ", ".join(corpus.directions)
            raise ConfigError(
                f"{name} has text in {known}, either way round; got direction = {self.config.direction!r}"
            )
        if has_training_text(corpus, src, tgt, self._folders):
            return self._find(corpus.train)
        lacking = next(text for text in corpus.train if text.is_in(src, tgt) and not self._find((text,)))
        wanted = f"{lacking.folder}/{lacking.stem}"
        folders = ", ".join(map(str, self._folders))
        nowhere = f"there is no {wanted}.{src} with {wanted}.{tgt} (plain, .gz or .xz) in {folders}"
        if name in CATALOGUE:
            raise DataError(f"{name}: {nowhere}; fetch it with: transduce corpus get {name}; or name its --data folder")
        own_folders = [folder / lacking.folder for folder in self._folders if (folder / lacking.folder).is_dir()]
        if own_folders:
            raise DataError(f"{name}: {nowhere}; {' and '.join(map(_what_is_in, own_folders))}")
        known = nearest_name(name, [*CATALOGUE, *_WITHOUT_FOLDER])
        raise DataError(f"{name} is no corpus that has a name ({known}), and {nowhere}")

    def _grammar_pairs(self, split: Split) -> Pairs:
        direction = self.config.direction
        if direction not in ("en-de", "de-en"):
            raise ConfigError(f"the grammar corpus is English and German, got direction = {direction!r}")
        pairs = grammar_pairs(self.config, split)
        return ((pair.en, pair.de) if direction == "en-de" else (pair.de, pair.en) for pair in pairs)

    def _names_files(self, split: Split) -> bool:
        return any(name is not None for name in self.config.files_of(split))

    def _two_files(self, split: Split) -> Pairs:
        """Those that are named for a split. Raises ConfigError if there are none."""
        src, tgt, _ = self.config.files_of(split)
        if src is None or tgt is None:
            raise ConfigError(f"no {split} text: set data.{split}_src and data.{split}_tgt, or data.{split}_tsv")
        return read_aligned_files(Path(src), Path(tgt), escape_invalid=split == "train")


def grammar_pairs(config: DataConfig, split: Split) -> Iterator[GrammarPair]:
    """The part of the built-in corpus that a configuration asks for, with its trees."""
    n_pairs = {"train": config.n_pairs, "dev": GRAMMAR_DEV_PAIRS, "test": GRAMMAR_TEST_PAIRS}[split]
    return generate_pairs(split, n_pairs=n_pairs, seed=config.corpus_seed)


def require_text(path: Path) -> None:
    """Raises DataError unless ``path`` is a regular file of text: opening a pipe here would wait for ever."""
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device, and text is read more than once"
        raise DataError(f"{path} cannot be used: it is {kind}; name a file")
    open_binary(path).close()
    reason = foreign_format(path)
    if reason is not None:
        raise DataError(f"{path} {reason}")


def _what_is_in(folder: Path) -> str:
    """The first names in a folder, for an error."""
    names = sorted(path.name for path in folder.iterdir())
    more = ", ..." if len(names) > N_NAMES_SHOWN else ""
    return f"{folder} has {', '.join(names[:N_NAMES_SHOWN]) or 'nothing'}{more}"
