"""Treebanks, read tree by tree: whether every bracket matches, how many there are, and what a parser will not learn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from transduce.config import SPLITS, DataConfig
from transduce.corpora import BUILT_IN, TreebankText, read_trees
from transduce.diagnostics.finding import Finding, counted, good, guard, note, problem
from transduce.errors import ConfigError, DataError
from transduce.linearisation import most_in_a_row
from transduce.text.bracket_grammar import BracketGrammar
from transduce.trees import Tree

__all__ = ["examine_tree_file", "examine_trees_of", "is_of_trees"]

ENDINGS = (".ptb", ".mrg")


def is_of_trees(path: Path) -> bool:
    """Whether the name of a file says that it holds trees."""
    name = path.name.removesuffix(".gz").removesuffix(".xz")
    return name.endswith(ENDINGS)


def examine_tree_file(path: Path) -> Iterator[Finding]:
    """A file of Penn brackets, in any layout."""
    yield from _examine_trees(path, read_trees([path]))


def examine_trees_of(data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
    """The trees of each part that a recipe reads."""
    try:
        text = TreebankText(data, data_folder)
    except (ConfigError, DataError) as error:
        yield problem(recipe, str(error))
        return
    for corpus in text.corpora:
        if corpus != BUILT_IN:
            yield from guard(f"{corpus} train", _examine_trees(f"{corpus} train", text.train_trees(corpus)))
    if data.recombination:
        yield note(recipe, f"training reads {data.n_recombined} more of each tree, recombined")
    for split in SPLITS:
        name = text.name_of(split)
        if split != "train" and name != f"{BUILT_IN} {split}":
            missing = "no validation, and no best checkpoint" if split == "dev" else "no score of them"
            if text.has(split):
                yield from guard(name, _examine_trees(name, text.trees(split)))
            else:
                yield note(recipe, f"there are no {split} trees: there will be {missing}")
    if BUILT_IN in text.corpora:
        yield good(BUILT_IN, "the trees of the built-in corpus, made from a seed; they need no files")


def _examine_trees(subject: object, trees: Iterable[Tree]) -> Iterator[Finding]:
    n_trees = n_words = longest = n_flat = n_steep = 0
    for tree in trees:
        words = tree.words()
        n_trees, n_words, longest = n_trees + 1, n_words + len(words), max(longest, len(words))
        n_steep += most_in_a_row(tree) > BracketGrammar.MAX_OPENED_IN_A_ROW
        n_flat += all(child.word is not None for child in tree.children)
    if not n_trees:
        yield problem(subject, "holds no tree with words; a tree is like (TOP (S (NP (PRP He)) (VP (VBZ sleeps))))")
        return
    yield good(
        subject,
        f"{counted(n_trees, 'tree')}, {counted(n_words, 'word')}, at most {longest:,} words in one; brackets match",
    )
    if n_steep:
        limit = BracketGrammar.MAX_OPENED_IN_A_ROW
        yield note(
            subject, f"{counted(n_steep, 'tree')} with more than {limit} brackets before a word; a parser opens no more"
        )
    if n_flat == n_trees:
        yield note(subject, "no tree has a constituent below its root: there is nothing to learn but tags")
