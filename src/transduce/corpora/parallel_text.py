"""Parallel text of a configuration, by corpus and split: the common interface to all corpora."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from transduce.config import SPLITS, DataConfig, ParallelCorpora, Split, nearest_name
from transduce.corpora.catalogue import CATALOGUE, OWN_FILES, corpus_named
from transduce.corpora.cleaning import CleaningReport, CleaningRules, clean
from transduce.corpora.corpus import Text
from transduce.corpora.detokenising import detokenised
from transduce.corpora.formats import foreign_format
from transduce.corpora.generated import GENERATED
from transduce.corpora.grammar import GrammarPair, generate_pairs
from transduce.corpora.layout import data_folders, find_text, has_training_text, listed
from transduce.corpora.parallel_files import read_aligned_files, read_tab_separated, read_uncleaned_columns
from transduce.corpora.source import Pair, Source
from transduce.errors import ConfigError, DataError
from transduce.files import open_binary

__all__ = ["GRAMMAR_DEV_PAIRS", "GRAMMAR_TEST_PAIRS", "ParallelText", "grammar_pairs", "require_text"]

PairT = TypeVar("PairT")
UncleanedPairs = Iterator[Pair | None]  # None: a line that is not a pair

GRAMMAR_DEV_PAIRS = 500
GRAMMAR_TEST_PAIRS = 1000

N_NAMES_SHOWN = 8  # file names of a folder in an error message


class ParallelText(Source[Pair]):
    """Training text by corpus; dev and test text from the configured files, or else from the first corpus that has it.

    >>> from transduce.config import ParallelData
    >>> text = ParallelText(ParallelData(corpus="grammar", n_pairs=2))
    >>> text.corpora, len(list(text.train_pairs("grammar"))), text.name_of("dev")
    (('grammar',), 2, 'grammar dev')
    """

    def __init__(self, config: DataConfig, data_folder: Path | None = None) -> None:
        """Find the corpora in ``data_folder`` and the default data folders.

        Raises ConfigError if a corpus is unknown or lacks one of the languages, DataError if text is missing.
        """
        super().__init__(config)
        self.config = ParallelCorpora.of(config)
        self._folders = data_folders(data_folder, self.config.folder)
        in_folders = [name for name in self.corpora if name not in (*GENERATED, OWN_FILES)]
        self._train_files = {name: self._find_train(name) for name in in_folders}
        for path in self.files:
            require_text(path)  # fail now, not minutes later when the dev text is read

    @property
    def files(self) -> list[Path]:
        """All files named in the recipe, and those of the training corpora."""
        named = [Path(name) for split in SPLITS for name in self.config.files_of(split) if name is not None]
        found = chain.from_iterable(self._train_files.values())
        return [*named, *chain.from_iterable(found)]

    def train_pairs(self, corpus: str) -> UncleanedPairs:
        """Stream the uncleaned (source, target) training lines of a corpus in a fixed order, detokenised if necessary.

        Only the first ``max_pairs``, if configured. Bytes that are not UTF-8 become lone surrogates, a line that is not
        a pair becomes None.
        """
        return islice(self._all_train_pairs(corpus), self.config.max_pairs)

    def _all_train_pairs(self, corpus: str) -> UncleanedPairs:
        match corpus:
            case name if name in GENERATED:
                return self._generated(name, "train")
            case "files":
                tsv = self.config.files_of("train")[2]
                return self._two_files("train") if tsv is None else read_uncleaned_columns(Path(tsv))
            case _:
                files = self._train_files[corpus]
                pairs = chain.from_iterable(read_aligned_files(src, tgt, escape_invalid=True) for src, tgt in files)
                if not corpus_named(corpus).is_tokenised:
                    return pairs
                return detokenised(pairs, self.config.src_language, self.config.tgt_language)

    def train(self, corpus: str) -> Iterator[Pair]:
        """Stream ``train_pairs`` after cleaning; a report counts dropped pairs by reason."""
        self.reports[corpus] = report = CleaningReport()
        return clean(self.train_pairs(corpus), CleaningRules.of(self.config), report)

    def of(self, split: Split) -> Iterator[Pair]:
        """Stream the (source, target) lines of dev or test. Raises DataError for a line that cannot be read."""
        tsv = self.config.files_of(split)[2]
        if tsv is not None:
            return read_tab_separated(Path(tsv))
        name = self._first_with(split)
        if self._names_files(split) or name is None:
            return self._two_files(split)
        if name in GENERATED:
            return self._generated(name, split)
        texts = self._find(corpus_named(name).texts(split))
        return chain.from_iterable(read_aligned_files(src, tgt) for src, tgt in texts)

    def name_of(self, split: Split) -> str:
        """Display name of the dev or test text, reported beside scores; "" if there is none."""
        if self._names_files(split):
            return " with ".join(name for name in self.config.files_of(split) if name is not None)
        name = self._first_with(split)
        if name is None or name in GENERATED:
            return f"{name} {split}" if name else ""
        present = (text for text in corpus_named(name).texts(split) if self._find((text,)))
        return ", ".join(f"{text.folder}/{text.stem}" for text in present)

    def _first_with(self, split: Split) -> str | None:
        """Name of the first corpus that has this split, dev or test."""
        for name in self.corpora:
            if name in GENERATED or (name != OWN_FILES and self._find(corpus_named(name).texts(split))):
                return name
        return None

    def _find(self, texts: tuple[Text, ...]) -> list[tuple[Path, Path]]:
        """Return the file pairs of the texts that are present."""
        config = self.config
        found = (find_text(text, config.src_language, config.tgt_language, self._folders) for text in texts)
        return [paths for paths in found if paths is not None]

    def _find_train(self, name: str) -> list[tuple[Path, Path]]:
        """Return the training file pairs of a corpus. Raises ConfigError or DataError if any is missing."""
        src, tgt = self.config.src_language, self.config.tgt_language
        corpus = corpus_named(name)
        if not any(text.is_in(src, tgt) for text in corpus.train):
            known = ", ".join(corpus.directions)
            raise ConfigError(
                f"{name} has text in {known}, in both directions; got direction = {self.config.direction!r}"
            )
        if has_training_text(corpus, src, tgt, self._folders):
            return self._find(corpus.train)
        missing = next(text for text in corpus.train if text.is_in(src, tgt) and not self._find((text,)))
        stem = f"{missing.folder}/{missing.stem}"
        not_found = f"there is no {stem}.{src} with {stem}.{tgt} (plain, .gz or .xz) in {listed(self._folders)}"
        if name in CATALOGUE:
            raise DataError(f"{name}: {not_found}; {corpus.how_to_get}; or set its --data folder")
        own_folders = [folder / missing.folder for folder in self._folders if (folder / missing.folder).is_dir()]
        if own_folders:
            raise DataError(f"{name}: {not_found}; {' and '.join(map(_listing, own_folders))}")
        known = nearest_name(name, [*CATALOGUE, *GENERATED, OWN_FILES])
        raise DataError(f"{name} is not a known corpus ({known}), and {not_found}")

    def _generated(self, name: str, split: Split) -> Iterator[Pair]:
        config, (first, second) = self.config, GENERATED[name].about.languages
        if config.direction not in (f"{first}-{second}", f"{second}-{first}"):
            raise ConfigError(f"{name} has text in {first} and {second}, got direction = {config.direction!r}")
        pairs = _generated(GENERATED[name].pairs, config, split)
        return pairs if config.src_language == first else ((other, one) for one, other in pairs)

    def _names_files(self, split: Split) -> bool:
        return any(name is not None for name in self.config.files_of(split))

    def _two_files(self, split: Split) -> Iterator[Pair]:
        """Read the two files configured for a split. Raises ConfigError if there are none."""
        src, tgt, _ = self.config.files_of(split)
        if src is None or tgt is None:
            raise ConfigError(f"no {split} text: set data.{split}_src and data.{split}_tgt, or data.{split}_tsv")
        return read_aligned_files(Path(src), Path(tgt), escape_invalid=split == "train")


def grammar_pairs(config: DataConfig, split: Split) -> Iterator[GrammarPair]:
    """Generate a split of the built-in corpus as configured, with trees."""
    return _generated(generate_pairs, config, split)


def _generated(generate: Callable[..., Iterator[PairT]], config: DataConfig, split: Split) -> Iterator[PairT]:
    if split == "train":
        return generate(split, n_pairs=config.n_pairs, seed=config.corpus_seed)
    n_pairs = GRAMMAR_DEV_PAIRS if split == "dev" else GRAMMAR_TEST_PAIRS
    return iter(_evaluation_pairs(generate, split, n_pairs, config.corpus_seed))


@lru_cache(maxsize=4)  # they are read several times in a run
def _evaluation_pairs(
    generate: Callable[..., Iterator[PairT]], split: Split, n_pairs: int, seed: int
) -> tuple[PairT, ...]:
    return tuple(generate(split, n_pairs=n_pairs, seed=seed))


def require_text(path: Path, *, may_be_json: bool = False) -> None:
    """Require a regular text file. Raises DataError for anything else; a pipe is not opened, which would block."""
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device, and text is read more than once"
        raise DataError(f"{path} cannot be used: it is {kind}; give a regular file")
    open_binary(path).close()
    reason = None if may_be_json else foreign_format(path)
    if reason is not None:
        raise DataError(f"{path} {reason}")


def _listing(folder: Path) -> str:
    """First file names in a folder, for an error message."""
    names = sorted(path.name for path in folder.iterdir())
    more = ", ..." if len(names) > N_NAMES_SHOWN else ""
    return f"{folder} has {', '.join(names[:N_NAMES_SHOWN]) or 'no files'}{more}"
