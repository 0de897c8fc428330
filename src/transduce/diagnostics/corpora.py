"""Diagnostics of corpora: by name, in a folder, or in a recipe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

from transduce.config import (
    LANGUAGE_PATTERN,
    SPLITS,
    RunConfig,
    nearest_name,
)
from transduce.corpora import (
    CATALOGUE,
    GENERATED,
    Text,
    available_directions,
    corpus_named,
    data_folders,
    find_text,
)
from transduce.corpora.digits import DIGITS
from transduce.corpora.treebank_text import find_trees
from transduce.findings.finding import Finding, good, guard, note, problem
from transduce.findings.pairs import N_GENERATED_PAIRS
from transduce.findings.text import examine_line_pairs, examine_two_files
from transduce.findings.treebanks import examine_tree_file
from transduce.recipes import read_recipe

__all__ = [
    "corpora_in", "describe_run", "examine_corpus", "examine_corpus_folder", "examine_data_folder", "examine_recipe",
    "examine_trees", "parallel_texts_in",
]  # fmt: skip

_TEXT_FILE = re.compile(rf"(?P<stem>[^.].*?)\.(?P<language>{LANGUAGE_PATTERN})(?:\.gz|\.xz)?")
_NO_LANGUAGE = frozenset({"csv", "tsv", "txt", "xml", "sgm", "log", "npy", "md", "py", "sh", "zip", "tar", "tgz"})


def examine_corpus(name: str, data_folder: Path | None = None) -> Iterator[Finding]:
    """Examine all texts of a corpus on this machine, in all of its language pairs."""
    if name in GENERATED:
        yield good(name, "a built-in corpus, generated from a seed; it needs no files")
        pairs = GENERATED[name].pairs("train", n_pairs=N_GENERATED_PAIRS, seed=1)
        yield from examine_line_pairs(f"{name}, {N_GENERATED_PAIRS} pairs", pairs)
        return
    if name == DIGITS:
        yield good(name, "a built-in corpus, of scikit-learn; it needs no files")
        return
    folders = data_folders(data_folder)
    if trees := [path for split in SPLITS if (path := find_trees(name, split, folders))]:
        yield good(name, f"a treebank: {', '.join(map(str, trees))}")
        yield from examine_trees(trees)
        return
    corpus = corpus_named(name)
    texts = [*corpus.train, *corpus.dev, *corpus.test, *corpus.further]
    here = {text: _files_of(text, folders) for text in dict.fromkeys(texts)}
    if not any(here.values()):
        searched = ", ".join(map(str, folders))
        known = nearest_name(name, [*GENERATED, *CATALOGUE])
        help = CATALOGUE[name].how_to_get if name in CATALOGUE else known
        yield problem(name, f"no text of this corpus in {searched}, and no file or folder of this name; {help}")
        return
    kind = "a corpus of the catalogue" if name in CATALOGUE else "your own corpus"
    directions = ", ".join(available_directions(corpus, folders))
    yield good(name, kind + (f", with all of its training text in {directions}" if directions else ""))
    yield from _examine_texts(here.values(), is_tokenised=corpus.is_tokenised)


def examine_corpus_folder(folder: Path) -> Iterator[Finding]:
    """Examine a folder of aligned files ``STEM.LANGUAGE``."""
    texts = parallel_texts_in(folder)
    yield good(folder, f"a folder of parallel text: {', '.join(texts)}")
    yield from _examine_texts([(paths[0], other) for other in paths[1:]] for paths in texts.values())


def examine_trees(paths: Iterable[Path]) -> Iterator[Finding]:
    """Examine files of Penn brackets."""
    for path in paths:
        yield from guard(path, examine_tree_file(path))


def _examine_texts(texts: Iterable[Sequence[tuple[Path, Path]]], *, is_tokenised: bool = False) -> Iterator[Finding]:
    reported: set[Path] = set()
    for files in texts:
        for src, tgt in files:
            yield from examine_two_files(src, tgt, reported=reported, is_tokenised=is_tokenised)


def examine_data_folder(folder: Path) -> Iterator[Finding]:
    """Examine a folder that holds one folder per corpus."""
    names = corpora_in(folder)
    yield note(
        folder,
        f"a data folder, with text in {', '.join(names)}; to examine the text, name one of these:"
        f" transduce doctor {folder / names[0]}",
    )


def corpora_in(folder: Path) -> list[str]:
    """Return the names of the folders in a data folder that hold parallel text."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and parallel_texts_in(path))


def parallel_texts_in(folder: Path) -> dict[str, list[Path]]:
    """Return the texts of a folder that exist in two or more languages, with their files."""
    texts: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):  # plain files come before compressed ones
        match = _TEXT_FILE.fullmatch(path.name)
        if match and match["language"] not in _NO_LANGUAGE and path.is_file():
            texts.setdefault(match["stem"], {}).setdefault(match["language"], path)
    return {stem: list(files.values()) for stem, files in texts.items() if len(files) > 1}


def _files_of(text: Text, folders: Sequence[Path]) -> list[tuple[Path, Path]]:
    """Return pairs of aligned files of a text, each file at least once but without redundant pairs."""
    languages = text.languages or _languages_of(text, folders)
    pairs = [pair for pair in combinations(languages, 2) if text.is_in(*pair)]
    existing = [files for src, tgt in pairs if (files := find_text(text, src, tgt, folders)) is not None]
    covered: set[Path] = set()
    selected = []
    for files in existing:
        if not covered.issuperset(files):
            covered.update(files)
            selected.append(files)
    return selected


def _languages_of(text: Text, folders: Sequence[Path]) -> list[str]:
    """Return the languages that a text has files in, with or without a language pair in their names."""
    text_folders = [folder / text.folder for folder in folders]
    names = [path.name for folder in text_folders if folder.is_dir() for path in folder.iterdir()]
    matches = filter(None, map(_TEXT_FILE.fullmatch, names))
    stem = re.compile(rf"{re.escape(text.stem)}(\.[a-z]{{2,3}}-[a-z]{{2,3}})?")
    return sorted({match["language"] for match in matches if stem.fullmatch(match["stem"])} - _NO_LANGUAGE)


def examine_recipe(path: Path, data_folder: Path | None = None) -> Iterator[Finding]:
    """Examine a recipe and all the text that it names."""
    from transduce.tasks import task_of  # late: they import torch, which text does not need

    warnings = list[str]()
    config = read_recipe(path, log=warnings.append)
    for warning in warnings:
        yield note(path, warning.removeprefix(f"warning: {path}: "))
    task_of(config).require_best_by(config)
    yield good(path, f"a recipe: {describe_run(config)}")
    training = config.training
    if training.warmup_steps > training.max_updates and training.max_minutes is None:
        yield note(
            path,
            f"training ends after {training.max_updates:,} updates, before the end of the warm-up after"
            f" {training.warmup_steps:,}; raise max_updates or lower warmup_steps",
        )
    yield from task_of(config).examine(config.data, path, data_folder)


def describe_run(config: RunConfig) -> str:
    """Describe the model, the text and the length of a run."""
    from transduce.tasks import task_of

    model, data = config.model, config.data
    return (
        f"{model.layers_in_words()} of width {model.d_model}, {task_of(config).use(data).what}"
        f" from {' and '.join(data.weights)}, {config.training.max_updates:,} updates"
    )
