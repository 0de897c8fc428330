"""Recognises what a name refers to, by its contents, and runs the matching diagnostics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from transduce.config import CORPUS_PATTERN
from transduce.corpora.checks import TextPart, remarks_between, two_file_part
from transduce.corpora.formats import foreign_format
from transduce.diagnostics import corpora
from transduce.findings import text, treebanks
from transduce.findings.finding import Finding, good, guard, problem
from transduce.findings.media import examine_media_list, is_media_list
from transduce.findings.rankings import examine_ranking_file, examine_shared_prompts, is_ranking_file
from transduce.imports import needing_train_extra
from transduce.recipes import built_in_recipes

__all__ = ["examine"]

Written = Literal["run", "prepared", "store", "checkpoint", "checkpoints", "model"]  # folders written by transduce

# One of these names is enough, so that a folder is recognised even if other files are missing.
_SIGNS: dict[Written, frozenset[str]] = {
    "run": frozenset({"run.json", "metrics.jsonl", "checkpoints", "prepared_at.json"}),
    "prepared": frozenset({"prepared.json"}),
    "store": frozenset({"store.json"}),
    "checkpoint": frozenset({"state.json", "optimizer.safetensors"}),
    "model": frozenset({"config.json", "model.safetensors"}),
}
N_NAMES_SHOWN = 5


def examine(names: Sequence[str], data_folder: Path | None = None) -> Iterator[Finding]:
    """Examine each named folder, file or corpus. Two consecutive text files are source and target.

    The first such pair is checked for overlap with later ones, which may be its dev and test text; the first file of
    rankings likewise.
    """
    remaining, parts, rankings = list(names), list[TextPart](), list[Path]()
    while remaining:
        name = remaining.pop(0)
        path = Path(name)
        if remaining and _is_text_in_one_language(path) and _is_text_in_one_language(Path(remaining[0])):
            tgt = Path(remaining.pop(0))
            yield good(path, f"source, with {tgt} as its target")
            yield from guard(path, text.examine_two_files(path, tgt))
            if foreign_format(path) is None and foreign_format(tgt) is None:
                parts.append(two_file_part(path, tgt))
        else:
            if is_ranking_file(path):
                rankings.append(path)
            yield from guard(name, _examine_one(name, path, data_folder))
    if len(rankings) > 1:
        yield from guard(rankings[0], examine_shared_prompts(rankings))
    if len(parts) > 1:
        yield from guard(parts[0].name, map(text.as_finding, remarks_between(parts[:1], parts[1:])))


def _is_text_in_one_language(path: Path) -> bool:
    is_other = path.suffix == ".toml" or treebanks.is_treebank_file(path) or is_ranking_file(path)
    return path.is_file() and not is_other and not text.is_tab_separated(path)


def _examine_one(name: str, path: Path, data_folder: Path | None) -> Iterator[Finding]:
    if not name:
        yield problem("an empty name", "is not valid; name a folder, a file or a corpus")
    elif path.is_dir():
        yield from _examine_folder(path)
    elif path.is_file():
        yield from _examine_file(path, data_folder)
    elif path.exists():
        yield problem(name, "is neither a file nor a folder")
    elif name in built_in_recipes():
        yield from corpora.examine_recipe(path, data_folder)
    elif re.fullmatch(CORPUS_PATTERN, name) and path.suffix != ".toml":
        yield from corpora.examine_corpus(name, data_folder)
    else:
        yield problem(name, "is not an existing file or folder, nor a corpus name")


def _examine_file(path: Path, data_folder: Path | None) -> Iterator[Finding]:
    if path.suffix == ".toml":
        yield from corpora.examine_recipe(path, data_folder)
    elif treebanks.is_treebank_file(path):
        yield from treebanks.examine_tree_file(path)
    elif is_ranking_file(path):
        yield from examine_ranking_file(path)
    elif is_media_list(path):
        yield from examine_media_list(path)
    elif text.is_tab_separated(path):
        yield good(path, "text in columns, read as source TAB target")
        yield from text.examine_column_file(path)
    else:
        yield from text.examine_file(path)


def _examine_folder(folder: Path) -> Iterator[Finding]:
    kind = _kind_of(folder)
    if kind == "corpus":
        yield from corpora.examine_corpus_folder(folder)
    elif kind == "trees":
        paths = sorted(filter(treebanks.is_treebank_file, folder.iterdir()))
        yield good(folder, f"a folder of trees: {', '.join(path.name for path in paths)}")
        yield from corpora.examine_trees(paths)
    elif kind == "data":
        yield from corpora.examine_data_folder(folder)
    elif kind is not None:
        yield from _examine_written_folder(folder, kind)
    else:
        names = sorted(path.name for path in folder.iterdir())
        listed = ", ".join(names[:N_NAMES_SHOWN]) + (", ..." if len(names) > N_NAMES_SHOWN else "")
        yield problem(
            folder,
            f"unknown kind of folder: it {f'has {listed}' if names else 'is empty'}; name a run, a model, prepared"
            " text, a checkpoint, a token store, or a folder of aligned files such as train.en and train.de",
        )


def _examine_written_folder(folder: Path, kind: Written) -> Iterator[Finding]:
    if kind == "model":
        from transduce.diagnostics.models import examine_model

        yield from examine_model(folder)
        return
    with needing_train_extra("to examine it"):
        from transduce.diagnostics import folders, runs  # late: they import torch, which text does not need

    examiners: dict[str, Callable[[Path], Iterator[Finding]]] = {
        "run": runs.examine_run,
        "prepared": folders.examine_prepared,
        "store": folders.examine_store,
        "checkpoint": folders.examine_checkpoint,
        "checkpoints": runs.examine_checkpoints,
    }
    yield from examiners[kind](folder)
    if kind in ("prepared", "checkpoints"):
        yield from folders.examine_leftovers(folder)


def _kind_of(folder: Path) -> Written | Literal["corpus", "trees", "data"] | None:
    """Return the kind of a folder, None if unknown. Kinds that contain others are tested first."""
    names = {path.name for path in folder.iterdir()}
    for kind, signs in _SIGNS.items():
        if names & signs:
            return kind
    if any(re.fullmatch(r"[a-z0-9_]+\.(ids|values|offsets)\.npy", name) for name in names):
        return "store"
    if any(re.fullmatch(r"update-\d{8,}", name) for name in names):
        return "checkpoints"
    if corpora.parallel_texts_in(folder):
        return "corpus"
    if any(map(treebanks.is_treebank_file, folder.iterdir())):
        return "trees"
    return "data" if corpora.corpora_in(folder) else None
