"""Diagnostics of treebanks: bracket errors, sizes, and trees that a parser cannot learn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from transduce.config import SPLITS, DataConfig
from transduce.corpora import BUILT_IN, TreebankText, read_trees
from transduce.errors import ConfigError, DataError
from transduce.findings.finding import Finding, counted, good, guard, note, problem
from transduce.linearisation import max_opening_run
from transduce.text.bracket_grammar import BracketGrammar
from transduce.trees import Tree

__all__ = ["examine_tree_file", "examine_trees_of", "is_treebank_file"]

ENDINGS = (".ptb", ".mrg")


def is_treebank_file(path: Path) -> bool:
    """Return whether a file holds trees, by its name."""
    name = path.name.removesuffix(".gz").removesuffix(".xz")
    return name.endswith(ENDINGS)


def examine_tree_file(path: Path) -> Iterator[Finding]:
    """Examine a file of Penn brackets, in any layout."""
    yield from _examine_trees(path, read_trees([path]))


def examine_trees_of(data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
    """Examine the trees of each split that a recipe reads."""
    try:
        text = TreebankText(data, data_folder)
    except (ConfigError, DataError) as error:
        yield problem(recipe, str(error))
        return
    for corpus in text.corpora:
        if corpus != BUILT_IN:
            yield from guard(f"{corpus} train", _examine_trees(f"{corpus} train", text.train_trees(corpus)))
    if text.config.subtree_substitution:
        yield note(recipe, f"training also reads {text.config.n_recombined} recombined trees for each tree")
    for split in SPLITS:
        name = text.name_of(split)
        if split != "train" and name != f"{BUILT_IN} {split}":
            missing = "no validation and no best checkpoint" if split == "dev" else "no score on them"
            if text.has(split):
                yield from guard(name, _examine_trees(name, text.trees(split)))
            else:
                yield note(recipe, f"no {split} trees: there will be {missing}")
    if BUILT_IN in text.corpora:
        yield good(BUILT_IN, "the trees of the built-in corpus, generated from a seed; they need no files")


def _examine_trees(subject: object, trees: Iterable[Tree]) -> Iterator[Finding]:
    n_trees = n_words = longest = n_flat = n_steep = 0
    for tree in trees:
        words = tree.words()
        n_trees, n_words, longest = n_trees + 1, n_words + len(words), max(longest, len(words))
        n_steep += max_opening_run(tree) > BracketGrammar.MAX_OPENED_IN_A_ROW
        n_flat += all(child.word is not None for child in tree.children)
    if not n_trees:
        yield problem(subject, "has no tree with words, such as (TOP (S (NP (PRP He)) (VP (VBZ sleeps))))")
        return
    yield good(
        subject,
        f"{counted(n_trees, 'tree')}, {counted(n_words, 'word')}, at most {longest:,} words per tree; brackets match",
    )
    if n_steep:
        limit = BracketGrammar.MAX_OPENED_IN_A_ROW
        yield note(
            subject, f"{counted(n_steep, 'tree')} with more than {limit} opening brackets in a row, the parser's limit"
        )
    if n_flat == n_trees:
        yield note(subject, "no tree has constituents below its root: only tags can be learned")
