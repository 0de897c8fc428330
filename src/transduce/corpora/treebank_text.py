"""Treebanks as pairs of a sentence and its linearised tree (section 6.3).

In a data folder they are ``trees/NAME/train.ptb``, ``dev.ptb`` and ``test.ptb``: Penn brackets in any layout, plain or
compressed. ``wsj`` is read from the folder of the treebank itself, by sections.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from transduce.config import DataConfig, Split, TreesData
from transduce.corpora.catalogue import BUILT_IN, OWN_FILES
from transduce.corpora.cleaning import CleaningReport, CleaningRules, clean
from transduce.corpora.layout import data_folders, existing_file, listed
from transduce.corpora.parallel_text import grammar_pairs
from transduce.corpora.source import Pair, Source
from transduce.corpora.subtree_substitution import substitute_subtrees
from transduce.errors import ConfigError, DataError, TreeError
from transduce.files import read_lines
from transduce.linearisation import linearise
from transduce.trees import TRACE, Tree, parse_tree, parse_trees, parse_wordless_trees, plain, sentence_of_words

__all__ = [
    "TREEBANKS", "WSJ", "Treebank", "TreebankText", "find_trees", "plain_trees_of", "read_trees", "sentence_of",
]  # fmt: skip

WSJ = "wsj"  # the Wall Street Journal part of the Penn Treebank, which needs a licence
WSJ_SECTIONS: Mapping[Split, range] = {"train": range(2, 22), "dev": range(22, 23), "test": range(23, 24)}
FOLDER = "trees"
ENDINGS = ("ptb", "mrg")


@dataclass(frozen=True, slots=True)
class Treebank:
    """Catalogue entry of a treebank."""

    folder: str  # below ``trees`` in a data folder
    size: str
    licence: str
    source: str


TREEBANKS: Mapping[str, Treebank] = {
    "gum": Treebank(
        "gum",
        "10,224 sentences; dev 1,575; test 1,464",
        "CC BY 4.0 (annotation); texts by genre, some not commercial",
        "GUM, many genres of English; github.com/amir-zeldes/gum, const",
    ),
    "craft": Treebank(
        "craft", "26,010 sentences; dev 2,483", "CC BY 3.0", "CRAFT, articles on biology; github.com/UCDenver-ccp/CRAFT"
    ),
    "wsj-sample": Treebank(
        "nltk_wsj_sample",
        "3,396 sentences; dev 273",
        "(C) LDC 1995, not commercial",
        "a sample of the Penn Treebank; github.com/nltk/nltk_data, corpora/treebank",
    ),
}


class TreebankText(Source[Pair]):
    """Pairs of sentence and linearised tree, by corpus and split.

    >>> text = TreebankText(TreesData(corpus="grammar", n_pairs=2, shared_vocabulary=False))
    >>> next(text.of("dev"))[1].split()[:3]
    ['(S', '(NP', 'XX']
    """

    def __init__(self, config: DataConfig, data_folder: Path | None = None) -> None:
        """Find the treebanks in ``data_folder`` and the default data folders.

        Raises ConfigError or DataError if a treebank is missing.
        """
        super().__init__(config)
        self.config = TreesData.of(config)
        self._folders = data_folders(data_folder)
        self._train_files = {name: self._required_train_files(name) for name in self.corpora if name != BUILT_IN}

    def train(self, corpus: str) -> Iterator[Pair]:
        """Yield the training pairs of a corpus without long ones and those with control characters."""
        report = self.reports[corpus] = CleaningReport()
        return clean(map(self._pair, self.train_trees(corpus)), self._rules(), report)

    def recombined(self, corpus: str) -> Iterator[Pair]:
        """Yield pairs made of the training trees by subtree substitution; none if it is 0."""
        config = self.config
        if config.subtree_substitution:
            trees = list(self.train_trees(corpus))
            synthetic = substitute_subtrees(
                trees, p_exchange=config.subtree_substitution, n_copies=config.n_recombined, seed=config.corpus_seed
            )
            yield from clean(map(self._pair, synthetic), self._rules(), CleaningReport())

    def _rules(self) -> CleaningRules:
        return CleaningRules(
            max_characters=self.config.max_characters,
            max_length_ratio=math.inf,
            drop_identical=False,
            drop_duplicates=self.config.drop_duplicates,
        )

    def of(self, split: Split) -> Iterator[Pair]:
        """Yield the pairs of dev or test. Raises DataError if a tree cannot be read."""
        return map(self._pair, self.trees(split))

    def train_trees(self, corpus: str) -> Iterator[Tree]:
        """Yield the training trees of a corpus, at most ``max_pairs``, without what evaluation ignores."""
        trees = self._grammar_trees("train") if corpus == BUILT_IN else read_trees(self._train_files[corpus])
        return islice(trees, self.config.max_pairs)

    def trees(self, split: Split) -> Iterator[Tree]:
        """Yield the trees of dev or test, without what evaluation ignores."""
        own_file = self.config.file_of(split)
        if own_file is not None:
            return read_trees([Path(own_file)])
        name = self._first_with(split)
        if name is None:
            raise ConfigError(f"no {split} trees: set data.{split}_trees")
        return self._grammar_trees(split) if name == BUILT_IN else read_trees(self._files(name, split))

    def name_of(self, split: Split) -> str:
        """Display name of the dev or test trees, reported beside scores; "" if there are none."""
        own_file = self.config.file_of(split)
        if own_file is not None:
            return own_file
        name = self._first_with(split)
        return f"{name} {split}" if name else ""

    def _pair(self, tree: Tree) -> tuple[str, str]:
        return sentence_of(tree), " ".join(linearise(tree, leaves=self.config.leaves))

    def _first_with(self, split: Split) -> str | None:
        """Name of the first corpus that has this split, dev or test."""
        return next((name for name in self.corpora if name == BUILT_IN or self._files(name, split)), None)

    def _required_train_files(self, name: str) -> list[Path]:
        """Return the training files of a corpus. Raises DataError or ConfigError if there are none."""
        files = self._files(name, "train")
        if files:
            return files
        if name == OWN_FILES:
            raise ConfigError("corpus = 'files' needs data.train_trees, a file of Penn brackets")
        if name == WSJ:
            where = self.config.treebank or "nothing"
            raise DataError(
                f"wsj: --treebank must be the folder with the sections 00 to 24 of *.mrg files, got {where}"
            )
        folders = listed(folder / FOLDER / _folder_of(name) for folder in self._folders)
        known = ", ".join((*TREEBANKS, WSJ, BUILT_IN, OWN_FILES))
        raise DataError(f"{name}: there is no train.ptb (plain, .gz or .xz) in {folders}; known treebanks: {known}")

    def _files(self, name: str, split: Split) -> list[Path]:
        """Return the files of a corpus' split; empty if it has none."""
        if name == OWN_FILES:
            own_file = self.config.file_of(split)
            return [] if own_file is None else [Path(own_file)]
        if name == WSJ:
            if self.config.treebank is None:
                return []
            sections = [Path(self.config.treebank) / f"{section:02}" for section in WSJ_SECTIONS[split]]
            files = [sorted(section.glob("*.mrg")) for section in sections]
            missing = [section.name for section, found in zip(sections, files, strict=True) if not found]
            if missing and len(missing) < len(sections):
                raise DataError(f"wsj: {self.config.treebank} has no *.mrg files in section {', '.join(missing)}")
            return list(chain.from_iterable(files))
        path = find_trees(name, split, self._folders)
        return [] if path is None else [path]

    def _grammar_trees(self, split: Split) -> Iterator[Tree]:
        return (plain(parse_tree(pair.tree)) for pair in grammar_pairs(self.config, split))


def find_trees(name: str, split: Split, folders: Sequence[Path]) -> Path | None:
    """Find the file of a treebank's split in the first of the data ``folders`` that has it; None if none has."""
    places = (folder / FOLDER / _folder_of(name) for folder in folders)
    found = (existing_file(place, f"{split}.{ending}") for place in places for ending in ENDINGS)
    return next(filter(None, found), None)


def _folder_of(name: str) -> str:
    return TREEBANKS[name].folder if name in TREEBANKS else name


def read_trees(paths: list[Path]) -> Iterator[Tree]:
    """Yield the trees of files, without what evaluation ignores; trees that contain only traces are skipped.

    Raises DataError with file, line and column for an invalid tree.
    """
    for path in paths:
        try:
            yield from filter(None, map(_plain_or_none, parse_trees(read_lines(path))))
        except TreeError as error:
            raise DataError(f"{path}: {error}") from error


def plain_trees_of(lines: Iterable[str], name: str) -> Iterator[Tree | None]:
    """Like ``read_trees`` for the lines of ``name``, but yield None for trees without words or with traces only."""
    try:
        yield from map(_plain_or_none, parse_wordless_trees(lines))
    except TreeError as error:
        raise DataError(f"{name}: {error}") from error


def _plain_or_none(tree: Tree | None) -> Tree | None:
    if tree is None or all(leaf.label == TRACE for leaf in tree.leaves()):
        return None
    return plain(tree)


def sentence_of(tree: Tree) -> str:
    """Return the sentence of a tree, as the parser reads it: words joined by spaces, brackets unescaped.

    >>> sentence_of(parse_tree("(TOP (PRN (-LRB- -LRB-) (NN sic) (-RRB- -RRB-)))"))
    '( sic )'
    """
    return sentence_of_words(tree.words())
